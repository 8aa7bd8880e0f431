/** Texts of object storage and its buckets in the language of the page. Few visits need them, so the first page does
 *  without, and these pages wait for them. */
import type { enObjectStorage } from './en-object-storage.ts'
import { chosenLocale, type Locale } from './index.ts'

type StorageTexts = typeof enObjectStorage

const LOCALES: Readonly<Record<Locale, () => Promise<StorageTexts>>> = {
  en: async () => (await import('./en-object-storage.ts')).enObjectStorage,
  de: async () => (await import('./de-object-storage.ts')).deObjectStorage,
  pseudo: async () => (await import('./pseudo.ts')).pseudo((await import('./en-object-storage.ts')).enObjectStorage),
}

let current: StorageTexts | undefined

/** Before a page that shows them. */
export async function loadStorageTexts(): Promise<void> {
  current = await LOCALES[chosenLocale()]()
}

export function storageTexts(): StorageTexts {
  if (current === undefined) throw new Error('texts of object storage are not loaded')
  return current
}
