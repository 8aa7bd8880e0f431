/** Notes of fields in the language of the page. The API describes them in English; other languages have a table by that
 *  text, which only forms load. */
import { chosenLocale, type Locale } from './index.ts'

export type Notes = Readonly<Record<string, string>>

const TABLES: Partial<Record<Locale, () => Promise<Notes>>> = {
  de: async () => (await import('./de-notes.ts')).notes,
}

let table: Notes = {}

/** With those that one portal has beside the common ones. */
export async function loadNotes(more?: (locale: Locale) => Promise<Notes>): Promise<void> {
  const [common, own] = await Promise.all([TABLES[chosenLocale()]?.(), more?.(chosenLocale())])
  table = { ...common, ...own }
}

/** The description of the API in the language of the page; in English where the table does not have it. */
export const noteIn = (description: string | undefined): string | undefined =>
  description !== undefined && Object.hasOwn(table, description) ? table[description] : description
