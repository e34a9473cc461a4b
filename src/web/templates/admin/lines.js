// An editor of text with line numbers: a textarea beside a gutter.

// Shows line numbers, and marks lines with errors.
export function numberLines(area, wrong) {
  const gutter = area.parentElement.querySelector('.gutter');
  const lines = area.value.split('\n').length;
  const rows = [];
  for (let line = 1; line <= lines; line += 1) {
    const row = document.createElement('div');
    row.textContent = wrong.has(line) ? `✗ ${line}` : line;
    if (wrong.has(line)) row.className = 'fault';
    rows.push(row);
  }
  gutter.replaceChildren(...rows);
  gutter.scrollTop = area.scrollTop;
  area.toggleAttribute('data-faulty', wrong.size > 0);
}

// Selects the text from a place to the end of its line. Line and column begin with 1; a column is a character.
export function selectPlace(area, lineNumber, columnNumber) {
  const lines = area.value.split('\n');
  const line = Math.min(lineNumber, lines.length) - 1;
  const begin = lines.slice(0, line).reduce((sum, text) => sum + text.length + 1, 0);
  const column = [...lines[line]].slice(0, columnNumber - 1).join('').length;
  area.focus();
  area.setSelectionRange(begin + column, begin + lines[line].length);
  area.scrollTop = Math.max(0, line * parseFloat(getComputedStyle(area).lineHeight) - area.clientHeight / 3);
}

// Keeps the gutter beside the text, and gives a new line the indentation of the previous one, or one step more.
export function connectLines(area, opensBlock) {
  const gutter = area.parentElement.querySelector('.gutter');
  area.addEventListener('scroll', () => { gutter.scrollTop = area.scrollTop; });
  area.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    const before = area.value.slice(0, area.selectionStart).split('\n').pop();
    const indent = before.match(/^ */)[0] + (opensBlock.test(before) ? '  ' : '');
    if (!indent) return;
    event.preventDefault();
    // Unlike `setRangeText`, this can be undone by the user.
    document.execCommand('insertText', false, `\n${indent}`);
  });
  document.body.classList.add('scripted');
}
