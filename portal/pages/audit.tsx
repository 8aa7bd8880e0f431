/** `/audit`: who did what, with the state of the chain that proves it. */
import type { InfiniteData } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { AuditEntry } from '../../client/schema.ts'
import { cache, itemsOf, keyOf, type ListPart, useList, useRead } from '../api/cache.ts'
import { exportAll } from '../api/export.ts'
import { Refusal } from '../api/refusal.ts'
import type { Noun, Thing } from '../nouns/noun.ts'
import { useThings } from '../nouns/reads.ts'
import { nounNamed } from '../nouns/registry.ts'
import { Reference, Resource, Time } from '../nouns/value.tsx'
import { number } from '../texts/format.ts'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Snippet } from '../ui/copy.tsx'
import { TextField } from '../ui/field.tsx'
import { Loading, Page, Panel, Soft, Stack, Toolbar } from '../ui/layout.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { saveFile } from '../ui/save-file.ts'
import { type Look, State } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import { Unread } from '../ui/unread.tsx'
import { LoadMore } from './more.tsx'
import { useSubmission } from './submission.ts'

const LOOKS: Readonly<Record<AuditEntry['outcome'], Look>> = { success: 'good', denied: 'bad', failed: 'bad' }

export function AuditPage(): ReactNode {
  const [filter, setFilter] = useState('')
  const list = useList('list_audit_entries')
  const entries = itemsOf(list.data)
  const names = useNames()
  const words = filter.toLowerCase().split(/\s+/)
  const shown = entries.filter((entry) => words.every((word) => textOfEntry(entry, names).includes(word)))
  return (
    <Page title={t().audit.title} note={t().audit.note}>
      <Chain />
      <Toolbar>
        <div className="search">
          <TextField
            label={t().list.filter}
            isLabelHidden
            type="search"
            placeholder={t().list.filter}
            value={filter}
            onChange={setFilter}
          />
        </div>
      </Toolbar>
      {list.error instanceof Refusal && !list.isFetchNextPageError ? <ProblemView refusal={list.error} /> : null}
      {list.isPending ? <Loading /> : <Entries entries={shown} names={names} />}
      {list.hasNextPage ? <LoadMore list={list} operation="list_audit_entries" /> : null}
    </Page>
  )
}

const actorOf = (entry: AuditEntry): string => entry.token_name ?? (entry.actor_email || entry.actor_kind)

const textOfEntry = (entry: AuditEntry, names: Names): string =>
  [
    entry.action,
    actorOf(entry),
    entry.resource_type,
    entry.resource_id,
    listedName(entry) ?? names.get(entry.resource_id) ?? '',
    entry.outcome,
    entry.source_ip,
  ]
    .join(' ')
    .toLowerCase()

/** Of resources, by id. */
type Names = ReadonlyMap<string, string>

/** Operations name what they changed, also when it is deleted. They are read already, newest first: of several names,
 *  the newest counts. */
function useNames(): Names {
  const operations = itemsOf(useList('list_operations').data).toReversed()
  return new Map(operations.flatMap(({ resource: { id, name } }) => (name === null ? [] : [[id, name] as const])))
}

/** As its row shows it, which has read the list. */
function listedName({ resource_type: type, resource_id: id }: AuditEntry): string | undefined {
  const noun = nounNamed(type)
  if (noun === undefined) return undefined
  const list = cache.getQueryData<InfiniteData<ListPart<Thing>>>(keyOf(noun.list, noun.query))
  const item = itemsOf(list).find((each) => each.id === id)
  return item === undefined ? undefined : noun.titleOf(item)
}

interface EntriesProps {
  readonly entries: readonly AuditEntry[]
  readonly names: Names
}

function Entries({ entries, names }: EntriesProps): ReactNode {
  if (entries.length === 0)
    return (
      <Panel>
        <Soft>{t().list.noneFound}</Soft>
      </Panel>
    )
  const texts = t().audit
  return (
    <Table
      label={texts.title}
      items={entries}
      columns={[
        { id: 'action', name: texts.action, cell: ({ action }) => action },
        {
          id: 'outcome',
          name: texts.outcome,
          cell: ({ outcome }) => <State look={LOOKS[outcome]}>{texts.outcomes[outcome]}</State>,
        },
        { id: 'by', name: t().operations.by, cell: (entry) => <span dir="auto">{actorOf(entry)}</span> },
        {
          id: 'resource',
          name: texts.resource,
          cell: ({ resource_type: type, resource_id: id }) => (
            <span title={id}>
              <Subject type={type} id={id} name={names.get(id) ?? null} />
            </span>
          ),
        },
        { id: 'ip', name: t().fields.address, cell: ({ source_ip: address }) => address },
        { id: 'at', name: texts.at, cell: ({ at }) => <Time instant={at} /> },
      ]}
    />
  )
}

interface SubjectProps {
  readonly type: string
  readonly id: string
  readonly name: string | null
}

function Subject(props: SubjectProps): ReactNode {
  const noun = nounNamed(props.type)
  return noun === undefined ? <Resource {...props} /> : <Listed {...props} noun={noun} />
}

/** By the name in the list of its kind: not everything has operations, and not every new name is the work of one. What
 *  is not in the list has the name of its operations. */
function Listed({ noun, ...subject }: SubjectProps & { readonly noun: Noun }): ReactNode {
  const item = useThings(noun).items.find(({ id }) => id === subject.id)
  if (item !== undefined && noun.namedAfter?.idOf(item) !== undefined) return <Reference noun={noun} id={item.id} />
  return <Resource {...subject} name={item === undefined ? subject.name : noun.titleOf(item)} />
}

export function Chain(): ReactNode {
  const { data, error, refetch } = useRead('get_audit_integrity', {}, { isAlwaysStale: true })
  if (data === undefined)
    return (
      <Panel>
        <Unread error={error} retry={() => void refetch()} />
      </Panel>
    )
  const { status, verified_through_sequence: through, head_sequence: head, break: broken } = data
  const looks = { verified: 'good', unverified: 'busy', broken: 'bad' } as const
  const texts = t().audit
  return (
    <Panel>
      <Stack gap="tight">
        <State look={looks[status]}>
          {status === 'broken' ? texts.broken : texts.verified(number(through), number(head))}
        </State>
        {broken === null ? null : <p>{broken.reason}</p>}
      </Stack>
      <Download />
      <Snippet
        label={texts.verify}
        forms={[{ name: 'CLI', text: 'svccloud audit export-entries --all > audit.ndjson' }]}
      />
    </Panel>
  )
}

/** The whole log: the service answers it in parts. */
function Download(): ReactNode {
  const { isBusy, refusal, onSubmit } = useSubmission(async () =>
    saveFile('audit.ndjson', 'application/x-ndjson', await exportAll('export_audit_entries')),
  )
  return (
    <form onSubmit={onSubmit}>
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
      <Button type="submit" isBusy={isBusy}>
        {t().audit.download}
      </Button>
    </form>
  )
}
