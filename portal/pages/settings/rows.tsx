/** Rows of the account that are not nouns: a table with one action for each row. */
import { type ReactNode, useState } from 'react'
import { defined } from '../../../domain/defined.ts'
import { itemsOf, readAgain, useList } from '../../api/cache.ts'
import type { ItemOf, ListId } from '../../api/operations.ts'
import { Refusal } from '../../api/refusal.ts'
import { Loading, Panel, Soft } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { t } from '../../texts/index.ts'
import { LoadMore } from '../more.tsx'

interface RowsProps<List extends ListId> {
  readonly list: List
  readonly label: string
  readonly idOf: (item: ItemOf<List>) => string
  readonly nameOf: (item: ItemOf<List>) => string
  readonly columns: readonly Column<ItemOf<List> & { readonly id: string }>[]
  readonly none: string
  /** Removes a row, after a question. */
  readonly remove?: {
    readonly name: string
    readonly why: (item: ItemOf<List>) => string | undefined
    readonly note?: string
    readonly run: (item: ItemOf<List>) => Promise<unknown>
  }
}

const removalColumn = <List extends ListId>(
  { name, why }: Pick<NonNullable<RowsProps<List>['remove']>, 'name' | 'why'>,
  choose: (item: ItemOf<List>) => void,
): Column<ItemOf<List> & { readonly id: string }> => ({
  id: 'remove',
  name: t().list.actions,
  isEnd: true,
  cell: (item) => (
    <Button kind="quiet" why={why(item)} onPress={() => choose(item)}>
      {name}
    </Button>
  ),
})

export function Rows<List extends ListId>(props: RowsProps<List>): ReactNode {
  const { list, label, idOf, columns, none, remove } = props
  const paged = useList(list)
  const { data, error, isPending } = paged
  const [chosen, setChosen] = useState<ItemOf<List>>()
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  if (data === undefined && error instanceof Refusal) return <ProblemView refusal={error} />
  if (isPending) return <Loading />
  const items = itemsOf(data).map((item) => Object.assign({ id: idOf(item) }, item))
  if (items.length === 0)
    return (
      <Panel>
        <Soft>{none}</Soft>
      </Panel>
    )
  const run = async (item: ItemOf<List>): Promise<void> => {
    setBusy(true)
    try {
      await remove?.run(item)
      await readAgain(list)
      setChosen(undefined)
    } catch (failure) {
      if (failure instanceof Refusal) setRefusal(failure)
    }
    setBusy(false)
  }
  const choose = (item: ItemOf<List>): void => {
    setRefusal(undefined)
    setChosen(item)
  }
  return (
    <>
      <Table
        label={label}
        items={items}
        columns={[...columns, ...(remove === undefined ? [] : [removalColumn(remove, choose)])]}
        foot={paged.hasNextPage ? <LoadMore list={paged} operation={list} /> : undefined}
      />
      {chosen === undefined || remove === undefined ? null : (
        <Confirm
          title={t().choices.confirm(remove.name, props.nameOf(chosen))}
          button={remove.name}
          isBusy={isBusy}
          refusal={refusal}
          onConfirm={() => void run(chosen)}
          onClose={() => setChosen(undefined)}
          {...defined({ text: remove.note })}
        />
      )}
    </>
  )
}
