// A list of choices below a field. The arrow keys choose, Enter inserts, Escape closes.

// `insert` gets the index of the choice that somebody takes.
export function createChoices(input, { id, label, insert }) {
  const list = document.createElement('ul');
  list.id = id;
  list.className = 'completion';
  list.hidden = true;
  list.setAttribute('role', 'listbox');
  list.setAttribute('aria-label', label);
  input.setAttribute('aria-autocomplete', 'list');
  input.setAttribute('aria-controls', id);
  let chosen = -1;

  function choose(index) {
    chosen = index;
    for (const [at, item] of [...list.children].entries()) item.setAttribute('aria-selected', at === chosen);
    if (chosen < 0) return input.removeAttribute('aria-activedescendant');
    input.setAttribute('aria-activedescendant', list.children[chosen].id);
    list.children[chosen].scrollIntoView({ block: 'nearest' });
  }

  // Shows choices, each as what its item has; closes the list without one.
  function show(choices, first = -1) {
    list.replaceChildren(...choices.map((content, at) => {
      const item = document.createElement('li');
      item.id = `${id}-${at}`;
      item.setAttribute('role', 'option');
      item.append(...content);
      // Keeps the focus in the field.
      item.addEventListener('mousedown', (event) => event.preventDefault());
      item.addEventListener('click', () => insert(at));
      return item;
    }));
    list.hidden = !choices.length;
    if (input.getAttribute('role') === 'combobox') input.setAttribute('aria-expanded', !list.hidden);
    choose(list.hidden ? -1 : first);
  }

  // Returns whether a key was for the list.
  function press(key) {
    const count = list.children.length;
    if (key === 'ArrowDown' && count) choose((chosen + 1) % count);
    else if (key === 'ArrowUp' && count) choose(chosen > 0 ? chosen - 1 : count - 1);
    else if (key === 'Enter' && chosen >= 0) insert(chosen);
    else if (key === 'Escape' && count) show([]);
    else return false;
    return true;
  }

  return { list, show, press };
}
