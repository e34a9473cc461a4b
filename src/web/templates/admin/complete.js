// Completion in the text of a mapping: its keys, its types, and the names of the fields in the sample. The list opens while
// a name is typed, and with Ctrl and Space.
import { createChoices } from './choices.js';

const KEYS = ['absent: ', 'accept: ', 'base: ', 'datatype: ', 'default: ', 'elements:', 'fields:', 'items: ', 'key: ', 'keyScope: ', 'label: ', 'language: ', 'languages: ', 'ordered: true', 'outer: ', 'path: ', 'prefixes:', 'required: true', 'timeZone: ', 'type: ', 'types: ', 'unknownFields: ignore', 'values:'];
const TYPES = ['array', 'boolean', 'date', 'dateTime', 'group', 'id', 'integer', 'json', 'languageMap', 'map', 'number', 'object', 'resource', 'scalar', 'string'];
const MAX_CHOICES = 8;
// A longer sample is not read after each key.
const MAX_SAMPLE_LENGTH = 256 * 1024;

let read = { text: '', names: new Set() };

// Returns the names of all members of the sample. Reads it only if it has changed.
function listMembers(text) {
  if (text === read.text) return read.names;
  const names = new Set();
  const visit = (value) => {
    if (Array.isArray(value)) value.slice(0, 20).forEach(visit);
    else if (value && typeof value === 'object') {
      for (const [name, inner] of Object.entries(value)) {
        if (/^[\w-]+$/.test(name)) names.add(name);
        visit(inner);
      }
    }
  };
  try {
    if (text.length <= MAX_SAMPLE_LENGTH) visit(JSON.parse(text));
  } catch {
    // Not JSON, or not yet complete: only the keys of mappings are offered.
  }
  read = { text, names };
  return names;
}

// Returns the text before the caret, and its completions.
function findChoices(area, sample, isAsked) {
  const before = area.value.slice(0, area.selectionStart).split('\n').pop();
  const typed = before.match(/[\w-]*$/)[0];
  const ahead = before.slice(0, before.length - typed.length);
  if (area.selectionStart !== area.selectionEnd || (!typed && !isAsked)) return null;
  let offered = [];
  if (/\btype:\s*$/.test(ahead)) offered = TYPES;
  else if (/(^|[{,])\s*$/.test(ahead)) {
    const known = new Set(area.value.match(/^\s*[\w-]+(?=:)/gm)?.map((name) => name.trim()));
    offered = [...[...listMembers(sample.value)].filter((name) => !known.has(name)).map((name) => `${name}: `), ...KEYS];
  }
  const matching = offered.filter((one) => one.startsWith(typed) && one.trim() !== typed);
  return matching.length ? { typed, matching: matching.slice(0, MAX_CHOICES) } : null;
}

export function connectCompletion(area, sample) {
  const { list, show, press } = createChoices(area, { id: 'completion', label: 'Completion', insert });
  area.parentElement.append(list);
  let found = null;

  function close() {
    found = null;
    show([]);
  }

  function open(isAsked) {
    found = findChoices(area, sample, isAsked);
    if (!found) return close();
    const line = area.value.slice(0, area.selectionStart).split('\n').length;
    const height = parseFloat(getComputedStyle(area).lineHeight);
    list.style.top = `${Math.min(line * height - area.scrollTop + 10, area.clientHeight)}px`;
    show(found.matching.map((text) => [text]), isAsked ? 0 : -1);
  }

  function insert(index) {
    const text = found.matching[index].slice(found.typed.length);
    close();
    // Unlike `setRangeText`, this can be undone by the user.
    document.execCommand('insertText', false, text);
    close();
  }

  area.addEventListener('input', (event) => {
    if (event.inputType?.startsWith('insert')) open(false);
    else close();
  });
  area.addEventListener('blur', close);
  area.addEventListener('pointerdown', close);
  // In the capturing phase, before the keys that edit.
  area.addEventListener('keydown', (event) => {
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      return open(true);
    }
    if (!found) return;
    if (press(event.key)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    } else if (['ArrowLeft', 'ArrowRight', 'Home', 'End', 'Enter'].includes(event.key)) close();
  }, true);
}
