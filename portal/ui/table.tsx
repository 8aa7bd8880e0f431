/** Tables: native elements, of which only the rows in sight are rendered once there are many. */
import './table.css'
import { type KeyboardEvent, lazy, memo, type ReactNode, Suspense, useCallback, useEffect, useId, useRef } from 'react'
import { ArrowDown, ArrowUp } from 'lucide-react'
import { Button as AriaButton, Link as AriaLink } from 'react-aria-components'
import { now } from '../system.ts'
import { t } from '../texts/index.ts'
import { RowName } from './button.tsx'
import { Checkbox } from './field.tsx'

export interface Column<Item> {
  readonly id: string
  readonly name: string
  readonly cell: (item: Item) => ReactNode
  /** Numbers are at the end. */
  readonly isEnd?: boolean
  /** Sentences are shown whole, in several lines. */
  readonly isText?: boolean
}

export interface TableProps<Item extends { readonly id: string }> {
  readonly label: string
  /** The first one names the item, and is a link when items have pages. */
  readonly columns: readonly Column<Item>[]
  readonly items: readonly Item[]
  readonly hrefOf?: ((item: Item) => string) | undefined
  readonly nameOf?: ((item: Item) => string) | undefined
  readonly selected?: ReadonlySet<string>
  readonly onSelect?: (selected: ReadonlySet<string>) => void
  readonly menuOf?: ((item: Item) => ReactNode) | undefined
  /** More of it can be read. */
  readonly onEnd?: (() => void) | undefined
  /** The column that it is ordered by. */
  readonly order?: { readonly by: string; readonly isDown: boolean } | undefined
  /** A press on the head of a column. */
  readonly onOrder?: ((column: string) => void) | undefined
  readonly foot?: ReactNode
}

const VIRTUAL_ROWS = 200
const MINUTE_MILLISECONDS = 60_000

// Few tables have so many rows, and its library is 12 kB.
const RowsInSight = lazy(async () => ({ default: (await import('./rows-in-sight.tsx')).RowsInSight }))

export function Table<Item extends { readonly id: string }>(props: TableProps<Item>): ReactNode {
  const scroll = useRef<HTMLDivElement>(null)
  const { items, onEnd, columns, hrefOf, nameOf, menuOf, selected } = props
  const isTall = items.length > VIRTUAL_ROWS
  const toggle = useToggle(props)
  const minute = Math.floor(now() / MINUTE_MILLISECONDS)
  const rowAt = (at: number): ReactNode => {
    const item = items[at]
    if (item === undefined) return null
    const isSelected = selected?.has(item.id)
    return <Row key={item.id} {...{ item, at, minute, columns, isSelected, toggle, hrefOf, nameOf, menuOf }} />
  }
  const first = items.slice(0, VIRTUAL_ROWS).map((_item, at) => rowAt(at))
  return (
    <div className="table-frame">
      <div
        className={`table-scroll ${isTall ? 'tall' : ''}`}
        ref={scroll}
        {...(hasStops(props) ? {} : { tabIndex: 0, role: 'region', 'aria-label': props.label })}
      >
        <table className="table" role="table" aria-label={props.label} aria-rowcount={items.length + 1}>
          <TableHead {...props} />
          <tbody role="rowgroup" onKeyDown={(event) => onKey(event, props)}>
            {isTall ? (
              <Suspense fallback={first}>
                <RowsInSight count={items.length} scroll={scroll} rowAt={rowAt} onEnd={onEnd} />
              </Suspense>
            ) : (
              first
            )}
          </tbody>
        </table>
      </div>
      {props.foot === undefined ? null : <div className="table-foot">{props.foot}</div>}
    </div>
  )
}

/** Whether the keyboard gets to its rows, and so scrolls it. */
const hasStops = <Item extends { readonly id: string }>({ hrefOf, selected, menuOf }: TableProps<Item>): boolean =>
  [hrefOf, selected, menuOf].some((part) => part !== undefined)

function TableHead<Item extends { readonly id: string }>(props: TableProps<Item>): ReactNode {
  const { columns, items, selected, onSelect } = props
  const isAll = selected !== undefined && items.length > 0 && items.every(({ id }) => selected.has(id))
  return (
    <thead role="rowgroup">
      <tr role="row" aria-rowindex={1}>
        {selected === undefined ? null : (
          <th role="columnheader" scope="col" className="pick">
            <Checkbox
              label={t().list.selectAll}
              isLabelHidden
              isOn={isAll}
              isPartly={!isAll && selected.size > 0}
              onChange={(isOn) => onSelect?.(new Set(isOn ? items.map(({ id }) => id) : []))}
            />
          </th>
        )}
        {columns.map((column) => (
          <ColumnHead key={column.id} {...column} order={props.order} onOrder={props.onOrder} />
        ))}
        {props.menuOf === undefined ? null : (
          <th role="columnheader" scope="col" className="row-menu">
            <span className="for-readers">{t().list.actions}</span>
          </th>
        )}
      </tr>
    </thead>
  )
}

type ColumnHeadProps = Pick<Column<never>, 'id' | 'name' | 'isEnd'> & Pick<TableProps<never>, 'order' | 'onOrder'>

function ColumnHead({ id, name, isEnd, order, onOrder }: ColumnHeadProps): ReactNode {
  const isBy = order?.by === id
  const Arrow = order?.isDown === true ? ArrowDown : ArrowUp
  return (
    <th
      role="columnheader"
      scope="col"
      className={isEnd === true ? 'end' : ''}
      {...(isBy ? { 'aria-sort': order.isDown ? 'descending' : 'ascending' } : {})}
    >
      {onOrder === undefined ? (
        name
      ) : (
        <AriaButton className="order" onPress={() => onOrder(id)}>
          {name}
          {isBy ? <Arrow aria-hidden="true" /> : null}
        </AriaButton>
      )}
    </th>
  )
}

/** Selects an item, or no longer; the same function as long as the table is there. */
function useToggle<Item extends { readonly id: string }>(props: TableProps<Item>): (id: string) => void {
  const latest = useRef(props)
  useEffect(() => {
    latest.current = props
  })
  return useCallback((id) => {
    const { selected, onSelect } = latest.current
    if (selected !== undefined) onSelect?.(toggled(selected, id))
  }, [])
}

interface RowProps<Item extends { readonly id: string }>
  extends Pick<TableProps<Item>, 'columns' | 'hrefOf' | 'nameOf' | 'menuOf'> {
  readonly item: Item
  readonly at: number
  /** Rows say how long ago something was. */
  readonly minute: number
  /** Undefined when rows cannot be selected. */
  readonly isSelected: boolean | undefined
  readonly toggle: (id: string) => void
}

/** A row that stays as it is while others change, in tables whose functions stay the same. */
const Row = memo(PlainRow) as typeof PlainRow

function PlainRow<Item extends { readonly id: string }>({ item, at, isSelected, ...props }: RowProps<Item>): ReactNode {
  const { columns, toggle, hrefOf, nameOf } = props
  const href = hrefOf?.(item)
  const name = useId()
  return (
    <tr role="row" aria-rowindex={at + 2} data-row={at} className={isSelected === true ? 'selected' : ''}>
      {isSelected === undefined ? null : (
        <td role="cell" className="pick">
          <Checkbox
            label={t().list.select(nameOf?.(item) ?? item.id)}
            isLabelHidden
            isOn={isSelected}
            onChange={() => toggle(item.id)}
          />
        </td>
      )}
      {columns.map((column, index) => (
        <td
          key={column.id}
          role="cell"
          data-label={column.name}
          className={classOf(column, index === 0)}
          {...(index === 0 ? { id: name } : {})}
        >
          {index > 0 ? (
            <RowName value={name}>{column.cell(item)}</RowName>
          ) : href === undefined ? (
            column.cell(item)
          ) : (
            <AriaLink href={href}>{column.cell(item)}</AriaLink>
          )}
        </td>
      ))}
      {props.menuOf === undefined ? null : (
        <td role="cell" className="row-menu">
          {props.menuOf(item)}
        </td>
      )}
    </tr>
  )
}

const classOf = ({ isEnd, isText }: Pick<Column<never>, 'isEnd' | 'isText'>, isFirst: boolean): string =>
  [isFirst ? 'first' : '', isEnd === true ? 'end' : '', isText === true ? 'text' : '']
    .filter((name) => name !== '')
    .join(' ')

/** The selection with one item more, or one less. */
export function toggled(selected: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(selected)
  if (!next.delete(id)) next.add(id)
  return next
}

/** `j`, `k` and arrows move between rows, `x` selects, `e` opens the actions. */
function onKey<Item extends { readonly id: string }>(event: KeyboardEvent, props: TableProps<Item>): void {
  const row = event.target instanceof Element ? event.target.closest('tr') : null
  if (row === null || event.ctrlKey || event.metaKey || event.altKey) return
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key]
  const item = props.items[Number(row.dataset['row'])]
  if (step !== undefined) {
    const next = step > 0 ? row.nextElementSibling : row.previousElementSibling
    const target = next?.querySelector<HTMLElement>('.first a, .first button, input')
    if (target === null || target === undefined) return
    event.preventDefault()
    target.focus()
    next?.scrollIntoView({ block: 'nearest' })
  } else if (event.key === 'x' && item !== undefined && props.selected !== undefined)
    props.onSelect?.(toggled(props.selected, item.id))
  else if (event.key === 'e') row.querySelector<HTMLElement>('.row-menu button')?.click()
}
