/** Which columns the list of a noun has, and its order. The columns are remembered for this browser. */
import { useState } from 'react'
import { remember, remembered } from '../api/browser.ts'
import { locale } from '../texts/locale.ts'
import { isEmpty } from './form.ts'
import type { FieldName, Noun, Thing } from './noun.ts'

export interface Order {
  /** Id of the column. */
  readonly by: string
  readonly isDown: boolean
}

export interface ListView {
  /** Columns beside name and state. */
  readonly fields: readonly FieldName[]
  readonly setFields: (fields: readonly FieldName[]) => void
  /** Absent: as the service lists them, newest first. */
  readonly order: Order | undefined
  readonly setOrder: (order: Order | undefined) => void
}

type Fields = Pick<Noun, 'columns' | 'facts'>

/** Fields that its list can show, in the order of its columns, then of the facts on the page of an item. */
export const fieldsOf = ({ columns, facts }: Fields): readonly FieldName[] => [...new Set([...columns, ...facts])]

export function useListView(noun: Noun): ListView {
  const place = `columns.${noun.name}`
  const [fields, keep] = useState(() => chosenOf(noun, remembered(place)))
  const [order, setOrder] = useState<Order>()
  const setFields = (next: readonly FieldName[]): void => {
    keep(next)
    remember(place, next.join(' '))
  }
  return { fields, setFields, order, setOrder }
}

/** What was remembered, without fields that another release has removed. */
export function chosenOf(noun: Fields, kept: string | undefined): readonly FieldName[] {
  if (kept === undefined) return noun.columns
  const names = new Set(kept.split(' '))
  return fieldsOf(noun).filter((name) => names.has(name))
}

/** By a column: first up, then down, then as the service lists them. */
export const nextOrder = (before: Order | undefined, by: string): Order | undefined =>
  before?.by !== by ? { by, isDown: false } : before.isDown ? undefined : { by, isDown: true }

/** The items by a value of each: numbers by size, other values as people of the language order texts. What has no value
 *  is last in both directions. */
export function ordered(items: readonly Thing[], valueOf: (item: Thing) => unknown, isDown: boolean): readonly Thing[] {
  const { compare } = new Intl.Collator(locale(), { numeric: true })
  const sign = isDown ? -1 : 1
  return items
    .map((item) => ({ item, value: valueOf(item) }))
    .toSorted(({ value: a }, { value: b }) =>
      isEmpty(a) || isEmpty(b)
        ? Number(isEmpty(a)) - Number(isEmpty(b))
        : sign * (typeof a === 'number' && typeof b === 'number' ? a - b : compare(String(a), String(b))),
    )
    .map(({ item }) => item)
}
