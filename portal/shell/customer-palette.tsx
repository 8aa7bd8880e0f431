/** What the palette of customers has beside nouns: settings, and what the service finds in the account. */
import { useRead } from '../api/cache.ts'
import { hrefOf, type Noun } from '../nouns/noun.ts'
import { nounNamed } from '../nouns/registry.ts'
import { knownItem } from '../nouns/titles.ts'
import { SETTINGS_PAGES } from '../pages/settings-pages.ts'
import { nounTexts, t } from '../texts/index.ts'
import type { PaletteEntry } from './palette.tsx'

const LETTERS_MINIMUM = 2

export function useSettingsAndSearch(text: string): readonly PaletteEntry[] {
  const query = { q: text }
  const { data } = useRead('search_resources', { query }, { isOn: text.length >= LETTERS_MINIMUM })
  const settings = SETTINGS_PAGES.map(({ path, name, icon: Icon }) => ({
    id: path,
    name: name(),
    note: t().palette.settings,
    icon: <Icon aria-hidden="true" />,
  }))
  const found = (data?.items ?? []).flatMap(({ type, id, name, zone }) => {
    const noun = nounNamed(type)
    if (noun === undefined) return []
    const Icon = noun.icon
    return [
      {
        id: hrefOf(noun, { id }),
        name: name || knownName(noun, id),
        note: `${nounTexts(noun.name).one} ${zone}`,
        icon: <Icon aria-hidden="true" />,
        // the service may have found it by an address or a label
        by: text,
      },
    ]
  })
  return [...settings, ...found]
}

/** Of what nobody named: as its list names it. */
function knownName(noun: Noun, id: string): string {
  const item = knownItem(noun, id)
  return item === undefined ? id : noun.titleOf(item)
}
