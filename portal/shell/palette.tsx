/** The palette: pages, creations and resources that were read, by a few letters. */
import { Plus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import {
  Autocomplete,
  Dialog,
  Input,
  ListBox,
  ListBoxItem,
  Modal,
  ModalOverlay,
  SearchField,
  useFilter,
} from 'react-aria-components'
import { cache, useRead } from '../api/cache.ts'
import { useMay } from '../api/session.ts'
import { hrefOf, type Thing } from '../nouns/noun.ts'
import { allNouns, nounNamed } from '../nouns/registry.ts'
import { t } from '../texts/index.ts'
import { SETTINGS_PAGES } from '../pages/settings-pages.ts'
import { useGo } from './go.ts'

interface Entry {
  readonly id: string
  readonly name: string
  readonly note: string
  readonly icon: ReactNode
  /** What the service found it by. */
  readonly by?: string
}

const RESOURCES_MAXIMUM = 300

export function Palette({ close }: { readonly close: () => void }): ReactNode {
  const { contains } = useFilter({ sensitivity: 'base' })
  const [text, setText] = useState('')
  const go = useGo()
  const entries = useEntries(text.trim())
  return (
    <ModalOverlay
      className="shade"
      isOpen
      isDismissable
      onOpenChange={(isOpen) => {
        if (!isOpen) close()
      }}
    >
      <Modal className="dialog-box palette-box">
        <Dialog aria-label={t().palette.title} className="palette">
          <Autocomplete filter={contains} inputValue={text} onInputChange={setText}>
            <SearchField aria-label={t().palette.title} autoFocus>
              <Input placeholder={t().palette.placeholder} />
            </SearchField>
            <ListBox
              className="options"
              aria-label={t().palette.title}
              items={entries}
              selectionMode="none"
              onAction={(href) => {
                close()
                go(String(href))
              }}
              renderEmptyState={() => <div className="nothing">{t().palette.nothing}</div>}
            >
              {({ id, name, note, icon, by = '' }) => (
                <ListBoxItem id={id} textValue={`${name} ${note} ${by}`} className="option">
                  {icon}
                  <span dir="auto">{name}</span>
                  <span className="note">{note}</span>
                </ListBoxItem>
              )}
            </ListBox>
          </Autocomplete>
        </Dialog>
      </Modal>
    </ModalOverlay>
  )
}

const LETTERS_MINIMUM = 2

/** Of all resources of the account, by the service; those that were read are there at once. */
function useEntries(text: string): readonly Entry[] {
  const query = { q: text }
  const { data } = useRead('search_resources', { query }, { isOn: text.length >= LETTERS_MINIMUM })
  const may = useMay()
  const nouns = allNouns()
  const pages = nouns.map(({ path, name, icon: Icon }) => ({
    id: String(path),
    name: t().nouns[name].many,
    note: t().palette.pages,
    icon: <Icon aria-hidden="true" />,
  }))
  const creations = nouns.flatMap(({ create, name, path }) =>
    create === undefined || !may(create)
      ? []
      : [
          {
            id: `${path}/new`,
            name: t().list.create(t().nouns[name].one),
            note: t().palette.create,
            icon: <Plus aria-hidden="true" />,
          },
        ],
  )
  const settings = SETTINGS_PAGES.map(({ path, name, icon: Icon }) => ({
    id: path,
    name: name(),
    note: t().palette.settings,
    icon: <Icon aria-hidden="true" />,
  }))
  const known = resources()
  const found = (data?.items ?? []).flatMap(({ type, id, name, zone }) => {
    const noun = nounNamed(type)
    if (noun === undefined) return []
    const href = hrefOf(noun, { id })
    const Icon = noun.icon
    // the service may have found it by an address or a label
    return known.some((each) => each.id === href)
      ? []
      : [
          {
            id: href,
            name: name || id,
            note: `${t().nouns[noun.name].one} ${zone}`,
            icon: <Icon aria-hidden="true" />,
            by: text,
          },
        ]
  })
  return [...pages, ...creations, ...settings, ...known, ...found]
}

/** Resources of lists that were read. */
function resources(): readonly Entry[] {
  const found = new Map<string, Entry>()
  for (const noun of allNouns())
    for (const [, list] of cache.getQueriesData<{ pages?: { items: Thing[] }[] }>({ queryKey: [noun.list] }))
      for (const item of list?.pages?.flatMap(({ items }) => items) ?? []) {
        const Icon = noun.icon
        const href = hrefOf(noun, item)
        if (found.size < RESOURCES_MAXIMUM)
          found.set(href, {
            id: href,
            name: noun.titleOf(item),
            note: t().nouns[noun.name].one,
            icon: <Icon aria-hidden="true" />,
          })
      }
  return [...found.values()]
}
