/** The search of the guide. It runs in the browser, and loads its index on first use. */
(() => {
  const MOST = 12;
  const root = document.documentElement.dataset.root ?? '';
  const form = document.querySelector('form.search');
  const input = form.querySelector('input');
  const list = form.querySelector('[role=listbox]');
  const status = form.querySelector('[role=status]');
  form.hidden = false;

  // In a narrow window the menu is collapsed.
  const menu = document.querySelector('details.menu');
  if (menu !== null && matchMedia('(max-width: 60rem)').matches) menu.open = false;

  let loading;
  const load = () => {
    loading ??= Promise.all(['minisearch.js', 'passages.js'].map(script)).then(() => {
      const search = new MiniSearch({
        idField: 'url',
        fields: ['heading', 'page', 'text'],
        storeFields: ['page', 'heading', 'text'],
        // Names such as FLOWHOOK_DATA and workflow_failed are indexed as a whole and by their parts.
        tokenize: (text) =>
          text
            .split(/[^\p{L}\p{N}_]+/u)
            .flatMap((word) => [word, ...(word.includes('_') ? word.split('_') : [])]),
        searchOptions: {
          boost: { heading: 3, page: 4 },
          prefix: true,
          fuzzy: (word) => (word.length > 4 ? 0.2 : false),
          combineWith: 'AND',
        },
      });
      search.addAll(passages);
      return search;
    });
    return loading;
  };
  const script = (name) =>
    new Promise((resolve, reject) => {
      const element = document.createElement('script');
      element.src = root + name;
      element.onload = resolve;
      element.onerror = reject;
      document.head.append(element);
    });

  const options = () => [...list.children];
  const choose = (option) => {
    for (const one of options()) one.setAttribute('aria-selected', String(one === option));
    if (option === undefined) input.removeAttribute('aria-activedescendant');
    else {
      input.setAttribute('aria-activedescendant', option.id);
      option.scrollIntoView({ block: 'nearest' });
    }
  };
  const show = (isShown) => {
    list.hidden = !isShown;
    input.setAttribute('aria-expanded', String(isShown));
    if (!isShown) choose(undefined);
  };

  const update = async () => {
    const query = input.value.trim();
    if (query === '') {
      list.replaceChildren();
      status.textContent = '';
      return show(false);
    }
    const search = await load();
    // The query may have changed in the meantime.
    if (query !== input.value.trim()) return;
    const found = search.search(query).slice(0, MOST);
    list.replaceChildren(...found.map(optionOf(query)));
    status.textContent =
      found.length === 0
        ? `No results for “${query}”`
        : `${found.length} result${found.length === 1 ? '' : 's'}`;
    show(found.length > 0);
    choose(options()[0]);
  };

  const optionOf = (query) => (hit, at) => {
    const option = document.createElement('a');
    option.id = `found-${at}`;
    option.role = 'option';
    option.tabIndex = -1;
    option.href = root + hit.id;
    const place = document.createElement('b');
    place.textContent = hit.heading === '' ? hit.page : `${hit.page} › ${hit.heading}`;
    const words = document.createElement('span');
    words.textContent = around(hit.text, [query, ...hit.terms]);
    option.append(place, words);
    return option;
  };

  /** An excerpt of the text around the first match. */
  const around = (text, words) => {
    const lower = text.toLowerCase();
    const at = Math.max(0, ...words.slice(0, 1).map((word) => lower.indexOf(word.toLowerCase())));
    const first = at > 0 ? at : Math.max(0, ...words.map((word) => lower.indexOf(word.toLowerCase())));
    const begin = first < 60 ? 0 : text.indexOf(' ', first - 50) + 1;
    const piece = text.slice(begin, begin + 160);
    const end = begin + 160 < text.length ? piece.lastIndexOf(' ') : piece.length;
    return `${begin > 0 ? '… ' : ''}${piece.slice(0, end)}${end < piece.length ? ' …' : ''}`;
  };

  input.addEventListener('focus', load, { once: true });
  input.addEventListener('input', update);
  input.addEventListener('keydown', (event) => {
    const all = options();
    const at = all.findIndex((one) => one.getAttribute('aria-selected') === 'true');
    if (event.key === 'ArrowDown') choose(all[(at + 1) % all.length]);
    else if (event.key === 'ArrowUp') choose(all[(at - 1 + all.length) % all.length]);
    else if (event.key === 'Escape' && !list.hidden) show(false);
    else return;
    event.preventDefault();
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    (options().find((one) => one.getAttribute('aria-selected') === 'true') ?? options()[0])?.click();
  });
  list.addEventListener('click', () => show(false));
  form.addEventListener('focusout', (event) => {
    if (!form.contains(event.relatedTarget)) show(false);
  });
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof HTMLInputElement;
    if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
  });
})();
