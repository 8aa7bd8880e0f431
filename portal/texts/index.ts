/** The texts in the reader's language: `t()` answers all of them. Loaded before the first paint; another language
 *  reloads the page. */
import type { OperatorTexts } from '../operator/texts/en.ts'
import type { Texts } from './en.ts'
import type { NounTexts } from './noun-texts.ts'
import { remembered } from '../api/browser.ts'
import { locale, setLocale } from './locale.ts'

export type { Texts } from './en.ts'

/** Names of texts that registrations use, of both portals. Types only: customers load no text of operators. */
export type TextNames<Kind extends 'nouns' | 'fields' | 'actions'> = keyof Texts[Kind] | keyof OperatorTexts[Kind]

/** Texts of registrations that one portal has beside the common ones. */
export interface MoreTexts {
  readonly nouns: Readonly<Record<string, NounTexts>>
  readonly fields: Readonly<Record<string, string>>
  readonly actions: Readonly<Record<string, string>>
  readonly words: Readonly<Record<string, string>>
  /** For those whose role does not allow something. */
  readonly needsRole: string
}

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

/** Loads the texts of the chosen language, or of the first one of the browser that there is, and what one portal adds
 *  to them. */
export async function loadTexts(more?: (locale: Locale) => Promise<MoreTexts>): Promise<void> {
  const wanted = [remembered('locale'), ...navigator.languages.map((tag) => tag.split('-')[0])]
  chosen = wanted.find((name): name is Locale => name !== undefined && isLocale(name)) ?? 'en'
  const [common, own] = await Promise.all([LOCALES[chosen](), more?.(chosen)])
  current = own === undefined ? common : withMore(common, own)
  setLocale(chosen === 'pseudo' ? 'en' : chosen)
  document.documentElement.lang = locale()
}

const withMore = (texts: Texts, { nouns, fields, actions, words, needsRole }: MoreTexts): Texts => ({
  ...texts,
  nouns: { ...texts.nouns, ...nouns },
  fields: { ...texts.fields, ...fields },
  actions: { ...texts.actions, ...actions },
  problem: { ...texts.problem, askOwner: needsRole },
  choices: { ...texts.choices, words: { ...texts.choices.words, ...words } },
})

/** Names of a registered noun. Throws for one of the other portal. */
export function nounTexts(name: TextNames<'nouns'>): NounTexts {
  const texts: Readonly<Record<string, NounTexts>> = t().nouns
  const found = texts[name]
  if (found === undefined) throw new Error(`this portal has no noun ${name}`)
  return found
}

/** The button of an operation. Throws for one of the other portal. */
export function actionText(operation: TextNames<'actions'>): string {
  const texts: Readonly<Record<string, string>> = t().actions
  const found = texts[operation]
  if (found === undefined) throw new Error(`this portal has no action ${operation}`)
  return found
}

/** All texts. */
export function t(): Texts {
  if (current === undefined) throw new Error('texts are not loaded')
  return current
}

export const chosenLocale = (): Locale => chosen
