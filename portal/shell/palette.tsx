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
import { t } from '../texts/index.ts'
import { SETTINGS_PAGES } from '../pages/settings-pages.ts'
import { useGo } from './go.ts'

interface Entry {
  readonly id: string
  readonly name: string
  readonly note: string
  readonly icon: ReactNode
}

const RESOURCES_MAXIMUM = 300

export function Palette({ close }: { readonly close: () => void }): ReactNode {
  const { contains } = useFilter({ sensitivity: 'base' })
  const [text, setText] = useState('')
  const go = useGo()
  const entries = useEntries()
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
              {({ id, name, note, icon }) => (
                <ListBoxItem id={id} textValue={`${name} ${note}`} className="option">
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

function useEntries(): readonly Entry[] {
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
  return [...pages, ...creations, ...settings, ...resources()]
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
