/** Backups of a database, the window of instants that it can be restored to, and restoring to one of them. */
import type { ReactNode } from 'react'
import type { Database } from '../../../client/schema.ts'
import { useRead } from '../../api/cache.ts'
import type { Answer } from '../../api/operations.ts'
import { Refusal } from '../../api/refusal.ts'
import { useMay } from '../../api/session.ts'
import { bytes, utc } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { Button } from '../../ui/button.tsx'
import { Facts, Loading, Panel, Row, Soft, Stack } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { Note, State } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { type Question, useQuestion } from '../ask.tsx'
import { Time } from '../value.tsx'

type DatabaseBackups = Answer<'list_database_backups'>

interface DatabaseProps {
  readonly item: Database
}

export function RecoveryTab({ item }: DatabaseProps): ReactNode {
  const { data, error } = useRead('list_database_backups', { path: { id: item.id } }, { isAlwaysStale: true })
  if (data === undefined && error instanceof Refusal) return <ProblemView refusal={error} />
  if (data === undefined) return <Loading />
  return (
    <Stack>
      {item.backups.archive_failure === '' ? null : <Note look="busy">{item.backups.archive_failure}</Note>}
      <Window item={item} window={data.window} />
      {data.items.length === 0 ? null : <Backups items={data.items} />}
    </Stack>
  )
}

interface WindowProps extends DatabaseProps {
  readonly window: DatabaseBackups['window']
}

function Window({ item, window }: WindowProps): ReactNode {
  const [ask, dialog] = useQuestion(['list_databases', 'list_operations'])
  const may = useMay()
  const texts = t().recovery
  const { earliest_recoverable_at: earliest, latest_recoverable_at: latest, gaps } = window
  const isPossible = earliest !== null && latest !== null
  return (
    <Panel title={texts.window}>
      <Stack>
        {isPossible ? (
          <Facts
            facts={[
              { name: texts.from, value: utc(earliest) },
              { name: texts.to, value: utc(latest) },
              ...gaps.map(({ from, to }) => ({ name: texts.gap, value: `${utc(from)} – ${utc(to)}` })),
            ]}
          />
        ) : (
          <Soft>{texts.none}</Soft>
        )}
        {isPossible && may('restore_database') ? (
          <Row>
            <Button onPress={() => ask(restoreOf(item, texts.instant(earliest, latest)))}>
              {t().actions.restore_database}
            </Button>
          </Row>
        ) : null}
      </Stack>
      {dialog}
    </Panel>
  )
}

const restoreOf = ({ id, name }: Database, note: string): Question => ({
  operation: 'restore_database',
  path: { id },
  title: t().choices.confirm(t().actions.restore_database, name),
  button: t().actions.restore_database,
  text: t().recovery.makesNew,
  stays: [t().recovery.staysOld],
  fields: [{ name: 'name' }, { name: 'target_time', note: () => note }, { name: 'storage_gibibytes', isMore: true }],
  initial: { name: `${name}-restored` },
  isPriced: true,
})

const Backups = ({ items }: { readonly items: DatabaseBackups['items'] }): ReactNode => (
  <Panel title={t().nouns.backup.many} isBare>
    <Table
      label={t().nouns.backup.many}
      items={items}
      columns={[
        { id: 'at', name: t().fields.started_at, cell: ({ started_at: at }) => <Time instant={at} /> },
        {
          id: 'completed',
          name: t().fields.completed_at,
          cell: ({ completed_at: at }) => (at === null ? '–' : <Time instant={at} />),
        },
        { id: 'size', name: t().fields.size_gibibytes, cell: ({ size_bytes: size }) => bytes(size), isEnd: true },
        {
          id: 'restorable',
          name: t().recovery.restorable,
          cell: ({ is_restorable: isGood }) => (
            <State look={isGood ? 'good' : 'off'}>{isGood ? t().ui.yes : t().ui.no}</State>
          ),
        },
      ]}
    />
  </Panel>
)
