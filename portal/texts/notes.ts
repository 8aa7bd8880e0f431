/** Notes of fields in the language of the page. The API describes them in English; other languages have a table by that
 *  text, which only forms load. */
import { chosenLocale, type Locale } from './index.ts'

type Notes = Readonly<Record<string, string>>

const TABLES: Partial<Record<Locale, () => Promise<Notes>>> = {
  de: async () => (await import('./de-notes.ts')).notes,
}

let table: Notes = {}

export async function loadNotes(): Promise<void> {
  table = (await TABLES[chosenLocale()]?.()) ?? {}
}

/** The description of the API in the language of the page; in English where the table does not have it. */
export const noteIn = (description: string | undefined): string | undefined =>
  description !== undefined && Object.hasOwn(table, description) ? table[description] : description
