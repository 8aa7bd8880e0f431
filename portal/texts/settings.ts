/** Texts of some pages of settings in the language of the page. Few visits need them, so the first page does without,
 *  and these pages wait for them. */
import type { enSettings } from './en-settings.ts'
import { chosenLocale, type Locale } from './index.ts'

type SettingsTexts = typeof enSettings

const LOCALES: Readonly<Record<Locale, () => Promise<SettingsTexts>>> = {
  en: async () => (await import('./en-settings.ts')).enSettings,
  de: async () => (await import('./de-settings.ts')).deSettings,
  pseudo: async () => (await import('./pseudo.ts')).pseudo((await import('./en-settings.ts')).enSettings),
}

let current: SettingsTexts | undefined

/** Before a page that shows them. */
export async function loadSettingsTexts(): Promise<void> {
  current = await LOCALES[chosenLocale()]()
}

export function settingsTexts(): SettingsTexts {
  if (current === undefined) throw new Error('texts of settings are not loaded')
  return current
}
