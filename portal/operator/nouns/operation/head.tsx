/** What only an operation has: its progress and its events. */
import type { ReactNode } from 'react'
import type { MigrationProgress, Operation } from '../../../../client/operator-schema.ts'
import { LaterProgress } from '../../../nouns/later.tsx'
import { Time } from '../../../nouns/value.tsx'
import { bytes, number } from '../../../texts/format.ts'
import { t } from '../../../texts/index.ts'
import { Facts, Panel, Soft } from '../../../ui/layout.tsx'
import { Bar } from '../../../ui/state.tsx'
import { Table } from '../../../ui/table.tsx'
import { o } from '../../texts/index.ts'

interface OperationProps {
  readonly item: Operation
}

export const OperationHead = ({ item }: OperationProps): ReactNode => (
  <>
    {item.status === 'running' || item.status === 'pending' ? <LaterProgress operation={item} /> : null}
    {item.progress === undefined ? null : <Migration progress={item.progress} />}
    <Events item={item} />
  </>
)

function Migration({ progress }: { readonly progress: MigrationProgress }): ReactNode {
  const texts = o().operation
  const { transferred_bytes: transferred, total_bytes: total } = progress
  const copied = `${bytes(transferred)} / ${bytes(total)}`
  return (
    <Panel>
      {total === 0 ? null : <Bar part={transferred / total} label={`${texts.moved}: ${copied}`} />}
      <Facts
        facts={[
          { name: texts.from, value: progress.source_node_id },
          { name: texts.to, value: progress.target_node_id },
          { name: texts.phase, value: progress.phase === '' ? progress.state : progress.phase },
          { name: texts.attempt, value: number(progress.attempt) },
          { name: texts.passes, value: number(progress.iteration) },
          { name: texts.moved, value: copied },
          { name: texts.dirty, value: `${bytes(progress.dirty_bytes_per_second)}/s` },
          { name: texts.pause, value: `${number(progress.downtime_milliseconds)} ms` },
        ]}
      />
      {progress.detail === '' ? null : <Soft>{progress.detail}</Soft>}
    </Panel>
  )
}

/** What has happened in it, the oldest first. */
export function Events({ item }: OperationProps): ReactNode {
  const events = (item.events ?? []).map((event, at) => ({ ...event, id: String(at) }))
  if (events.length === 0) return null
  const texts = o().operation
  return (
    <Table
      label={texts.events}
      items={events}
      columns={[
        {
          id: 'message',
          name: texts.events,
          isText: true,
          cell: ({ message, kind }) => <span dir="auto">{message || kind}</span>,
        },
        { id: 'at', name: t().audit.at, cell: ({ at }) => <Time instant={at} /> },
      ]}
    />
  )
}
