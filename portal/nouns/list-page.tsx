/** The list of any noun. */
import { Ellipsis, Plus, SlidersHorizontal } from 'lucide-react'
import { createContext, lazy, type ReactNode, Suspense, useContext, useMemo, useRef, useState } from 'react'
import { defined } from '../../domain/defined.ts'
import { ruleOf } from '../api/portal.ts'
import { asRefusal } from '../api/refusal.ts'
import { useMay } from '../api/session.ts'
import { useKeys } from '../shell/keys.ts'
import { useGo } from '../shell/go.ts'
import { nounTexts, t } from '../texts/index.ts'
import { manyWithin, type NounTexts } from '../texts/noun-texts.ts'
import { Button, ButtonLink } from '../ui/button.tsx'
import { Snippet } from '../ui/copy.tsx'
import { TextField } from '../ui/field.tsx'
import { Empty, Loading, Page, Panel, Row, Soft, Toolbar } from '../ui/layout.tsx'
import { Menu } from '../ui/menu.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { State } from '../ui/state.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { type Actions, nameOfAction, useActions, whyOf } from './actions.tsx'
import { labelOf } from './fields.tsx'
import { isEmpty } from './form.ts'
import { type ListView, nextOrder, type Order, ordered, useListView } from './list-view.ts'
import { type FieldName, hrefOf, isInProgress, lookOf, type Noun, type Thing } from './noun.ts'
import { labelsOf, useThings } from './reads.ts'
import { useNamers } from './titles.ts'
import { isAmount, isInstant, textOf, Title, Value, wordOf } from './value.tsx'

export function ListPage({ noun }: { readonly noun: Noun }): ReactNode {
  const [isBusy, setBusy] = useState(false)
  const { list, items } = useThings(noun, { isBusy })
  const isNowBusy = items.some((item) => isInProgress(noun, item))
  if (isNowBusy !== isBusy) setBusy(isNowBusy)
  const may = useMay()
  const texts = nounTexts(noun.name)
  const canCreate = noun.create !== undefined && may(noun.create)
  const go = useGo()
  useKeys({ c: () => (canCreate ? go(`${noun.path}/new`) : undefined) })
  const create = canCreate ? (
    <ButtonLink href={`${noun.path}/new`} kind="primary" icon={<Plus aria-hidden="true" />}>
      {t().list.create(texts.one)}
    </ButtonLink>
  ) : undefined
  if (list.isPending)
    return (
      <Page title={texts.many}>
        <Panel>
          <Loading lines={5} />
        </Panel>
      </Page>
    )
  const isEmpty = items.length === 0 && list.data !== undefined
  return (
    <Page title={texts.many} buttons={isEmpty ? undefined : create}>
      {list.error === null ? null : (
        <ProblemView refusal={asRefusal(noun.list, list.error)} retry={() => void list.refetch()} />
      )}
      {isEmpty ? <EmptyList noun={noun} create={create} /> : null}
      {items.length === 0 ? null : (
        <FullList
          noun={noun}
          items={items}
          hasMore={list.hasNextPage}
          loadMore={() => {
            if (!list.isFetchingNextPage) void list.fetchNextPage()
          }}
        />
      )}
    </Page>
  )
}

function EmptyList({ noun, create }: { readonly noun: Noun; readonly create: ReactNode }): ReactNode {
  const { empty } = nounTexts(noun.name)
  const Icon = noun.icon
  const command = noun.create === undefined ? undefined : ruleOf(noun.create).command
  return (
    <Empty icon={<Icon />} title={empty.title} text={empty.text}>
      {create}
      {command === undefined ? null : (
        <Snippet label={t().list.asCommand} forms={[{ name: 'CLI', text: `svccloud ${command} --help` }]} />
      )}
    </Empty>
  )
}

export interface FullListProps {
  readonly noun: Noun
  readonly items: readonly Thing[]
  readonly hasMore?: boolean
  readonly loadMore?: () => void
}

const NO_SELECTION: ReadonlySet<string> = new Set()

/** Items of a noun with filter, selection and actions: on its own page, and on pages of others. */
export function FullList({ noun, items, hasMore = false, loadMore }: FullListProps): ReactNode {
  const [selected, setSelected] = useState(NO_SELECTION)
  const actions = useActions(noun, (done) =>
    setSelected((before) => new Set([...before].filter((id) => !done.has(id)))),
  )
  const shown = useShown(noun, items, hasMore)
  const texts = nounTexts(noun.name)
  const namers = useNamers(noun)
  const { menuOf, ...rows } = useMemo(() => rowsOf({ noun, namers }), [noun, namers])
  return (
    <ActionsOfRows value={actions}>
      <Toolbar>
        <ListTools noun={noun} shown={shown} />
        <BulkBar
          noun={noun}
          actions={actions}
          items={items.filter(({ id }) => selected.has(id))}
          clear={() => setSelected(NO_SELECTION)}
        />
      </Toolbar>
      {shown.items.length === 0 ? (
        <Panel>
          <Soft>{t().list.noneFound}</Soft>
        </Panel>
      ) : (
        <Table
          label={texts.many}
          columns={shown.columns}
          items={shown.items}
          {...rows}
          {...(actions.allowed.length === 0
            ? {}
            : {
                selected,
                onSelect: setSelected,
                menuOf,
              })}
          onEnd={hasMore ? loadMore : undefined}
          order={shown.order}
          onOrder={shown.onOrder}
          foot={
            <>
              <span>
                {footOf(shown.filter === '' ? items.length : shown.items.length, items.length, hasMore, texts)}
              </span>
              {hasMore && loadMore !== undefined ? (
                <Button kind="quiet" onPress={loadMore}>
                  {t().list.loadMore}
                </Button>
              ) : null}
            </>
          }
        />
      )}
      {actions.dialog}
    </ActionsOfRows>
  )
}

/** For menus that are open: other rows stay as they are when actions change. */
const ActionsOfRows = createContext<Actions | undefined>(undefined)

interface RowsOf {
  readonly noun: Noun
  /** With other names, rows have other labels. */
  readonly namers: unknown
}

/** The same functions for each row, however often the list changes: rows that do not change stay as they are. */
const rowsOf = ({ noun }: RowsOf) => ({
  hrefOf: (item: Thing) => hrefOf(noun, item),
  nameOf: (item: Thing) => noun.titleOf(item),
  menuOf: (item: Thing) => <RowMenu noun={noun} item={item} />,
})

/** What a list shows of its items, and in which order. */
interface Shown {
  readonly items: readonly Thing[]
  readonly columns: readonly Column<Thing>[]
  readonly view: ListView
  readonly filter: string
  readonly setFilter: (filter: string) => void
  readonly order: Order | undefined
  /** Absent while more items follow: those would have their places among the others. */
  readonly onOrder: ((column: string) => void) | undefined
}

function useShown(noun: Noun, items: readonly Thing[], hasMore: boolean): Shown {
  const [filter, setFilter] = useState('')
  const view = useListView(noun)
  const { fields } = view
  const order = hasMore ? undefined : view.order
  const columns = useMemo(() => columnsOf(noun, fields), [noun, fields])
  const isFiltered = filter !== ''
  // times in the texts change: they are kept only while somebody types
  const textOfItem = useMemo(
    () => (isFiltered ? kept((item) => inSight(noun, fields, item)) : undefined),
    [noun, fields, isFiltered],
  )
  const shown = useMemo(() => {
    const found = textOfItem === undefined ? items : filtered(items, filter, textOfItem)
    return order === undefined ? found : ordered(found, (item) => valueOf(noun, order.by, item), order.isDown)
  }, [noun, textOfItem, items, filter, order])
  const onOrder = hasMore ? undefined : (by: string) => view.setOrder(nextOrder(view.order, by))
  return { items: shown, columns, view, filter, setFilter, order, onOrder }
}

interface ListToolsProps {
  readonly noun: Noun
  readonly shown: Shown
}

function ListTools({ noun, shown }: ListToolsProps): ReactNode {
  const [isChoosing, setChoosing] = useState(false)
  const search = useRef<HTMLDivElement>(null)
  useKeys({ f: () => search.current?.querySelector('input')?.focus() })
  return (
    <>
      <div className="search" ref={search}>
        <TextField
          label={t().list.filter}
          isLabelHidden
          type="search"
          placeholder={t().list.filter}
          value={shown.filter}
          onChange={shown.setFilter}
        />
      </div>
      <Button
        label={t().list.viewButton}
        icon={<SlidersHorizontal aria-hidden="true" />}
        onPress={() => setChoosing(true)}
      />
      {isChoosing ? (
        <Suspense>
          <ListViewDialog
            noun={noun}
            view={shown.view}
            orders={shown.onOrder === undefined ? [] : shown.columns}
            onClose={() => setChoosing(false)}
          />
        </Suspense>
      ) : null}
    </>
  )
}

// few people choose columns, and every list is on the first page
const ListViewDialog = lazy(async () => ({ default: (await import('./list-view-dialog.tsx')).ListViewDialog }))

/** What the column is ordered by: numbers and times as they are, other values as they are shown. */
function valueOf(noun: Noun, column: string, item: Thing): unknown {
  if (column === 'name') return noun.titleOf(item)
  if (column === 'state') return wordOf(noun.stateOf?.(item) ?? '')
  const value = item[column]
  return isEmpty(value) || typeof value === 'number' || isInstant(column) ? value : textOf(column, value)
}

const footOf = (shown: number, count: number, hasMore: boolean, texts: NounTexts): string => {
  const many = manyWithin(texts)
  if (shown < count) return t().list.found(shown, count)
  return hasMore ? t().list.more(count, many) : t().list.count(count, texts.one, many)
}

function columnsOf(noun: Noun, fields: readonly FieldName[]): readonly Column<Thing>[] {
  const { stateOf } = noun
  const name: Column<Thing> = {
    id: 'name',
    name: labelOf('name'),
    cell: (item) => <Title noun={noun} item={item} />,
  }
  const state: Column<Thing> = {
    id: 'state',
    name: labelOf('state'),
    cell: (item) => <StateOf noun={noun} item={item} />,
  }
  const others = fields.map(
    (field): Column<Thing> => ({
      id: field,
      name: labelOf(field),
      cell: (item) => <Value field={field} value={item[field]} isShort />,
      isEnd: isAmount(field),
    }),
  )
  return [name, ...(stateOf === undefined ? [] : [state]), ...others]
}

export function StateOf({ noun, item }: { readonly noun: Noun; readonly item: Thing }): ReactNode {
  const state = noun.stateOf?.(item)
  return state === undefined ? null : <State look={lookOf(noun, state)}>{wordOf(state)}</State>
}

/** Items that have every word in their text. */
function filtered(items: readonly Thing[], filter: string, textOfItem: (item: Thing) => string): readonly Thing[] {
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  return items.filter((item) => words.every((word) => textOfItem(item).includes(word)))
}

/** The same text of an item each time: to find it costs far more than to search it. */
function kept(find: (item: Thing) => string): (item: Thing) => string {
  const texts = new WeakMap<Thing, string>()
  return (item) => {
    const text = texts.get(item) ?? find(item)
    texts.set(item, text)
    return text
  }
}

/** What a list shows of an item, in lower case, and its id and labels. */
const inSight = (noun: Noun, fields: readonly FieldName[], item: Thing): string =>
  [
    noun.titleOf(item),
    item.id,
    noun.stateOf?.(item) ?? '',
    ...fields.map((field) => `${String(item[field] ?? '')} ${textOf(field, item[field])}`),
    ...Object.entries(labelsOf(item)).map((pair) => pair.join('=')),
  ]
    .join(' ')
    .toLowerCase()

interface RowMenuProps {
  readonly noun: Noun
  readonly item: Thing
}

/** The menu is mounted when it is first used: there may be thousands of rows. */
function RowMenu({ noun, item }: RowMenuProps): ReactNode {
  const [isUsed, setUsed] = useState(false)
  const label = t().list.actionsOf(noun.titleOf(item))
  const button = (press?: () => void): ReactNode => (
    <Button kind="quiet" label={label} icon={<Ellipsis aria-hidden="true" />} {...defined({ onPress: press })} />
  )
  if (!isUsed) return button(() => setUsed(true))
  return <OpenMenu label={label} item={item} button={button()} />
}

interface OpenMenuProps {
  readonly label: string
  readonly item: Thing
  readonly button: ReactNode
}

function OpenMenu({ label, item, button }: OpenMenuProps): ReactNode {
  const [isOpen, setOpen] = useState(true)
  const actions = useContext(ActionsOfRows)
  return (
    <Menu label={label} entries={actions?.entriesFor(item) ?? []} isOpen={isOpen} onOpenChange={setOpen}>
      {button}
    </Menu>
  )
}

interface BulkBarProps {
  readonly noun: Noun
  readonly actions: Actions
  readonly items: readonly Thing[]
  readonly clear: () => void
}

function BulkBar({ actions, items, clear }: BulkBarProps): ReactNode {
  if (items.length === 0) return null
  const offered = actions.allowed.filter(({ form }) => form === undefined)
  return (
    <Row>
      <Soft>{t().list.selected(items.length)}</Soft>
      {offered.map((action) => (
        <Button
          key={nameOfAction(action)}
          why={items.map((item) => whyOf(action, item)).find((why) => why !== undefined)}
          onPress={() => actions.start(action, items)}
        >
          {nameOfAction(action)}
        </Button>
      ))}
      <Button kind="quiet" onPress={clear}>
        {t().list.clear}
      </Button>
    </Row>
  )
}
