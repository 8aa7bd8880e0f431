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
import { cache } from '../api/cache.ts'
import { useMay } from '../api/session.ts'
import { hrefOf, type Thing } from '../nouns/noun.ts'
import { allNouns } from '../nouns/registry.ts'
import { nounTexts, t } from '../texts/index.ts'
import { useGo } from './go.ts'

export interface PaletteEntry {
  readonly id: string
  readonly name: string
  readonly note: string
  readonly icon: ReactNode
  /** What the service found it by. */
  readonly by?: string
}

const RESOURCES_MAXIMUM = 300

export interface PaletteProps {
  readonly close: () => void
  /** A hook: what the portal has beside its nouns, given what is typed. */
  readonly useMore: (text: string) => readonly PaletteEntry[]
}

export function Palette({ close, useMore }: PaletteProps): ReactNode {
  const { contains } = useFilter({ sensitivity: 'base' })
  const [text, setText] = useState('')
  const go = useGo()
  const entries = useEntries(useMore(text.trim()))
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

/** What is at the same address is named once: what was read is there before an answer of the service. */
function useEntries(more: readonly PaletteEntry[]): readonly PaletteEntry[] {
  const may = useMay()
  const nouns = allNouns().filter(({ list }) => may(list))
  const pages = nouns.map(({ path, name, icon: Icon }) => ({
    id: String(path),
    name: nounTexts(name).many,
    note: t().palette.pages,
    icon: <Icon aria-hidden="true" />,
  }))
  const creations = nouns.flatMap(({ create, name, path }) =>
    create === undefined || !may(create)
      ? []
      : [
          {
            id: `${path}/new`,
            name: t().list.create(nounTexts(name).one),
            note: t().palette.create,
            icon: <Plus aria-hidden="true" />,
          },
        ],
  )
  const entries: readonly PaletteEntry[] = [...pages, ...creations, ...resources(), ...more]
  return [...new Map(entries.toReversed().map((entry) => [entry.id, entry])).values()].toReversed()
}

/** Resources of lists that were read. */
function resources(): readonly PaletteEntry[] {
  const found = new Map<string, PaletteEntry>()
  for (const noun of allNouns())
    for (const [, list] of cache.getQueriesData<{ pages?: { items: Thing[] }[] }>({ queryKey: [noun.list] }))
      for (const item of list?.pages?.flatMap(({ items }) => items) ?? []) {
        const Icon = noun.icon
        const href = hrefOf(noun, item)
        if (found.size < RESOURCES_MAXIMUM)
          found.set(href, {
            id: href,
            name: noun.titleOf(item),
            note: nounTexts(noun.name).one,
            icon: <Icon aria-hidden="true" />,
          })
      }
  return [...found.values()]
}

// a few lines, which come with it
export { KeyList } from './key-list.tsx'
