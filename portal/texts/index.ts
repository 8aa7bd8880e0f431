/** The texts in the reader's language: `t()` answers all of them. Loaded before the first paint; another language
 *  reloads the page. */
import type { Texts } from './en.ts'
import { remembered } from '../api/browser.ts'
import { locale, setLocale } from './locale.ts'

export type { Texts } from './en.ts'

const LOCALES = {
  en: async () => (await import('./en.ts')).en,
  de: async () => (await import('./de.ts')).de,
  /** For tests: every text from the catalogue is marked, and longer. */
  pseudo: async () => (await import('./pseudo.ts')).pseudo((await import('./en.ts')).en),
} satisfies Readonly<Record<string, () => Promise<Texts>>>

export type Locale = keyof typeof LOCALES
export const LOCALE_NAMES: Readonly<Record<string, string>> = { en: 'English', de: 'Deutsch' }

const isLocale = (name: string): name is Locale => Object.hasOwn(LOCALES, name)

let current: Texts | undefined
let chosen: Locale = 'en'

/** Loads the texts of the chosen language, or of the first one of the browser that there is. */
export async function loadTexts(): Promise<void> {
  const wanted = [remembered('locale'), ...navigator.languages.map((tag) => tag.split('-')[0])]
  chosen = wanted.find((name): name is Locale => name !== undefined && isLocale(name)) ?? 'en'
  current = await LOCALES[chosen]()
  setLocale(chosen === 'pseudo' ? 'en' : chosen)
  document.documentElement.lang = locale()
}

/** All texts. */
export function t(): Texts {
  if (current === undefined) throw new Error('texts are not loaded')
  return current
}

export const chosenLocale = (): Locale => chosen
