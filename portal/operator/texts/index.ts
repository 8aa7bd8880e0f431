/** The texts of the operators' portal in the reader's language: `o()` answers all of them. They are in a folder of the
 *  operators, so that no customer loads them. */
import type { Locale } from '../../texts/index.ts'
import type { OperatorTexts } from './en.ts'

const english = async (): Promise<OperatorTexts> => (await import('./en.ts')).operatorEnglish

const LOCALES: Readonly<Record<Locale, () => Promise<OperatorTexts>>> = {
  en: english,
  de: async () => (await import('./de.ts')).operatorGerman,
  pseudo: async () => (await import('../../texts/pseudo.ts')).pseudo(await english()),
}

let current: OperatorTexts | undefined

export async function loadOperatorTexts(locale: Locale): Promise<OperatorTexts> {
  current = await LOCALES[locale]()
  return current
}

/** All texts of operators. */
export function o(): OperatorTexts {
  if (current === undefined) throw new Error('texts are not loaded')
  return current
}
