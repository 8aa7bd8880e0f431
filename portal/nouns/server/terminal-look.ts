/** How the terminal looks under `style-src 'self'`: its style elements become sheets of the document. */
import type { Terminal } from '@xterm/xterm'

/** Opens the terminal in a place. Meanwhile `createElement('style')` answers an inert element whose text goes to a
 *  separate sheet. The answer removes the sheets. */
export function openUnderPolicy(terminal: Terminal, place: HTMLElement): () => void {
  const sheets: CSSStyleSheet[] = []
  const create = document.createElement.bind(document)
  // one signature of many
  const inert = ((name: string, options?: ElementCreationOptions) => {
    if (name.toLowerCase() !== 'style') return create(name, options)
    const sheet = new CSSStyleSheet()
    sheets.push(sheet)
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
    const element = create('meta')
    Object.defineProperty(element, 'textContent', {
      get: () => '',
      set: (text: string) => {
        sheet.replaceSync(text)
      },
    })
    return element
  }) as typeof document.createElement // one signature of many
  document.createElement = inert
  try {
    terminal.open(place)
  } finally {
    // the method of the prototype again
    // its own one is optional here
    delete (document as { createElement?: unknown }).createElement
  }
  return () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => !sheets.includes(sheet))
  }
}

/** Colours of the place, resolved: the terminal knows no `light-dark()`. */
export function themeOf(place: HTMLElement): {
  background: string
  foreground: string
  cursor: string
  selectionBackground: string
} {
  const { color, backgroundColor } = getComputedStyle(place)
  return {
    background: backgroundColor,
    foreground: color,
    cursor: color,
    selectionBackground: 'rgba(120, 120, 240, 0.35)',
  }
}
