/** Operations: progress of the one that runs, and what has happened before. */
import type { ReactNode } from 'react'
import { useState } from 'react'
import type { Operation } from '../../client/schema.ts'
import { itemsOf, readAgain, useList } from '../api/cache.ts'
import { portal } from '../api/portal.ts'
import { Refusal } from '../api/refusal.ts'
import { useMay } from '../api/session.ts'
import steps from '../generated/steps.json' with { type: 'json' }
import { LoadMore } from '../pages/more.tsx'
import { number } from '../texts/format.ts'
import { t } from '../texts/index.ts'
import { kindText, stepText } from '../texts/service.ts'
import { Button } from '../ui/button.tsx'
import { Loading, Panel, Soft } from '../ui/layout.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { Bar, type Look, State } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import { hrefOf, type Thing } from './noun.ts'
import { send } from './reads.ts'
import { nounNamed } from './registry.ts'
import { Time, Value } from './value.tsx'

const LOOKS: Readonly<Record<Operation['status'], Look>> = {
  pending: 'busy',
  running: 'busy',
  succeeded: 'good',
  failed: 'bad',
  cancelled: 'off',
}

const isOver = ({ status }: Pick<Operation, 'status'>): boolean =>
  status === 'succeeded' || status === 'failed' || status === 'cancelled'

/** Of an item with an operation; nothing without. */
export function OperationProgress({ item }: { readonly item: Thing }): ReactNode {
  const operation = item['active_operation']
  return typeof operation === 'object' && operation !== null ? <Progress operation={asOperation(operation)} /> : null
}

/** As items show it. */
const asOperation = (value: object): Operation => value as Operation // the contract's

export function Progress({ operation }: { readonly operation: Operation }): ReactNode {
  const may = useMay()
  const [refusal, setRefusal] = useState<Refusal>()
  const cancel = async (): Promise<void> => {
    try {
      await send(portal().cancelOperation, { path: { id: operation.id } })
      await readAgain(portal().operationList)
    } catch (error) {
      if (error instanceof Refusal) setRefusal(error)
    }
  }
  const { kind, step, step_index: index, step_count: count } = operation
  return (
    <div className="progress" role="group" aria-label={t().operations.progress}>
      <div className="line">
        <strong>{kindText(kind)}</strong>
        <span className="soft">{t().operations.step(stepText(step), index, count)}</span>
      </div>
      <Bar part={partOf(kind, index, count)} label={kindText(kind)} />
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
      {portal().isCancellable(kind) && may(portal().cancelOperation) ? (
        <div>
          <Button onPress={() => void cancel()}>{t().operations.cancel}</Button>
        </div>
      ) : null}
    </div>
  )
}

const STEPS: Readonly<Record<string, readonly string[]>> = steps

const partOf = (kind: string, index: number, count: number): number => {
  const all = count === 0 ? (STEPS[kind]?.length ?? 0) : count
  return all === 0 ? 0.1 : Math.max(0.06, Math.min(index, all) / (all + 1))
}

export interface ActivityProps {
  readonly type: string
  readonly id: string
}

/** What has happened to one resource, also when it is deleted. */
export const ActivityOf = ({ type, id }: ActivityProps): ReactNode => (
  <Operations query={{ resource: `${type}:${id}` }} />
)

export interface OperationsProps {
  readonly query: {
    readonly resource?: string
    readonly node_id?: string
    readonly status?: readonly Operation['status'][]
  }
  /** The newest of them, without a way to more; all without it. */
  readonly limit?: number
  /** Instead of the text for none. */
  readonly none?: string
  /** They change while they are on the screen. */
  readonly isBusy?: boolean
}

export function Operations({ query, limit, none, isBusy = false }: OperationsProps): ReactNode {
  // of the portal; both lists have the same items
  const operation = portal().operationList as 'list_operations'
  // of the same list
  const list = useList(operation, query as { readonly resource?: string }, { isBusy })
  const items = itemsOf(list.data).slice(0, limit)
  if (list.error instanceof Refusal && items.length === 0) return <ProblemView refusal={list.error} />
  if (list.isPending)
    return (
      <Panel>
        <Loading />
      </Panel>
    )
  if (items.length === 0)
    return (
      <Panel>
        <Soft>{none ?? t().operations.none}</Soft>
      </Panel>
    )
  const texts = t().operations
  const noun = nounNamed('operation')
  return (
    <Table
      label={texts.title}
      items={items}
      foot={limit === undefined && list.hasNextPage ? <LoadMore list={list} operation={operation} /> : undefined}
      {...(noun === undefined ? {} : { hrefOf: (each: Operation) => hrefOf(noun, each) })}
      columns={[
        { id: 'what', name: texts.what, cell: (each) => kindText(each.kind) },
        // of one resource, all rows would say the same
        ...(query.resource !== undefined
          ? []
          : [
              {
                id: 'resource',
                name: t().audit.resource,
                cell: (each: Operation) => <Value field="resource" value={each.resource} />,
              },
            ]),
        {
          id: 'status',
          name: texts.status,
          isText: true,
          cell: (each) => (
            <State look={LOOKS[each.status]}>
              {each.error === '' ? texts.statuses[each.status] : `${texts.statuses[each.status]}: ${each.error}`}
            </State>
          ),
        },
        { id: 'by', name: texts.by, cell: (each) => <span dir="auto">{actorOf(each)}</span> },
        { id: 'began', name: texts.began, cell: (each) => <Time instant={each.created_at} /> },
        { id: 'took', name: texts.took, cell: tookOf, isEnd: true },
      ]}
    />
  )
}

/** By name where the service knows it. */
const actorOf = (operation: Operation): string => {
  const named = 'actor_name' in operation ? operation.actor_name : undefined
  if (typeof named === 'string') return named
  return operation.actor.replace(/^(user|token|system):/, '')
}

function tookOf(operation: Operation): string {
  const { started_at: started, finished_at: finished } = operation
  if (started === null || finished === null) return isOver(operation) ? '–' : '…'
  const seconds = Math.max(0, (Date.parse(finished) - Date.parse(started)) / 1000)
  return seconds < 60 ? `${number(seconds, 1)} s` : `${number(seconds / 60, 1)} min`
}
