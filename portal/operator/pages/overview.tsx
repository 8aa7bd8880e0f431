/** `/dashboard` of operators: what needs somebody, capacity by zone, what is in progress, and who waits. */
import type { ReactNode } from 'react'
import type { Node, Operation } from '../../../client/operator-schema.ts'
import { itemsOf, useList, useRead } from '../../api/cache.ts'
import type { ItemOf } from '../../api/operations.ts'
import { asRefusal } from '../../api/refusal.ts'
import { useMay } from '../../api/session.ts'
import { kindText, Operations } from '../../nouns/activity.tsx'
import { hrefOf } from '../../nouns/noun.ts'
import { theNoun } from '../../nouns/registry.ts'
import { now } from '../../system.ts'
import { mebibytes, number } from '../../texts/format.ts'
import { nounTexts, t } from '../../texts/index.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Between, Grid, Loading, Page, Panel, Soft, Stack, Tile } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { Bar, State } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { o } from '../texts/index.ts'

/** Longer than any ordinary operation takes, and well before its deadline. */
const STUCK_MILLISECONDS = 3_600_000
/** Failures that are older were seen, or came to nothing. */
const RECENT_MILLISECONDS = 86_400_000

export const OverviewPage = (): ReactNode => {
  const may = useMay()
  return (
    <Page title={t().dashboard.title}>
      <Waiting />
      {may('list_nodes') ? <NeedsYou /> : null}
      {may('get_capacity') ? <Capacity /> : null}
      {may('list_operator_operations') ? <Running /> : null}
    </Page>
  )
}

/** Counts, with links to what they count. */
function Waiting(): ReactNode {
  const may = useMay()
  const nodes = itemsOf(useList('list_nodes', {}, { isOn: may('list_nodes') }).data)
  const quotas = useList(
    'list_quota_requests_as_staff',
    { state: 'open' },
    { isOn: may('list_quota_requests_as_staff') },
  )
  const clouds = useList(
    'list_private_cloud_requests_as_staff',
    { state: 'open' },
    { isOn: may('list_private_cloud_requests_as_staff') },
  )
  const ready = nodes.filter(({ state }) => state === 'ready').length
  return (
    <Grid>
      {nodes.length === 0 ? null : (
        <Tile
          name={o().overview.nodes}
          value={number(nodes.length)}
          note={o().overview.readyOf(number(ready), number(nodes.length))}
          href="/nodes"
        />
      )}
      <Count name="quota_request" list={quotas} />
      <Count name="private_cloud_request" list={clouds} />
    </Grid>
  )
}

interface CountProps {
  readonly name: 'quota_request' | 'private_cloud_request'
  readonly list: { readonly data?: Parameters<typeof itemsOf>[0] }
}

const Count = ({ name, list }: CountProps): ReactNode =>
  list.data === undefined ? null : (
    <Tile
      name={nounTexts(name).many}
      value={number(itemsOf(list.data).length)}
      note={o().overview.waiting}
      href={theNoun(name).path}
    />
  )

interface Trouble {
  readonly id: string
  readonly href: string
  readonly what: string
  readonly why: string
}

const LOST: readonly Node['state'][] = ['unreachable', 'fencing', 'fenced']

const ofNodes = (nodes: readonly Node[]): readonly Trouble[] =>
  nodes
    .filter(({ state }) => LOST.includes(state))
    .map((node) => ({
      id: `node:${node.id}`,
      href: hrefOf(theNoun('node'), node),
      what: node.hostname,
      why: node.state_detail === '' ? node.state : `${node.state}: ${node.state_detail}`,
    }))

const ofOperations = (
  operations: readonly Operation[],
  why: (kind: string, operation: Operation) => string,
): readonly Trouble[] =>
  operations.map((operation) => ({
    id: `operation:${operation.id}`,
    href: hrefOf(theNoun('operation'), operation),
    what: operation.resource.name ?? operation.resource.id,
    why: why(kindText(operation.kind), operation),
  }))

const isOld = ({ created_at: at }: Operation): boolean => now() - Date.parse(at) > STUCK_MILLISECONDS
const isRecent = ({ finished_at: at }: Operation): boolean =>
  at !== null && now() - Date.parse(at) < RECENT_MILLISECONDS

/** Nodes that are lost, operations that do not end, those that have failed, and an unhealthy control plane. */
function NeedsYou(): ReactNode {
  const texts = o().overview
  const may = useMay()
  const nodes = useList('list_nodes')
  const running = useList('list_operator_operations', { status: ['pending', 'running'] }, { isBusy: true })
  const failed = useList('list_operator_operations', { status: ['failed'] })
  const { data: plane } = useRead('get_control_plane', {}, { isOn: may('get_control_plane') })
  if (nodes.data === undefined || running.data === undefined || failed.data === undefined) {
    const error = nodes.error ?? running.error ?? failed.error
    return <Panel>{error === null ? <Loading /> : <ProblemView refusal={asRefusal('list_nodes', error)} />}</Panel>
  }
  const ofPlane = [
    ...(plane?.quorum === false ? [texts.noQuorum] : []),
    ...(plane?.members ?? [])
      .filter(({ is_healthy: isHealthy }) => !isHealthy)
      .map(({ role, node_id: node }) => `${node}: ${texts.unhealthy(role)}`),
  ].map((why) => ({ id: `plane:${why}`, href: '/nodes', what: texts.controlPlane, why }))
  const troubles = [
    ...ofPlane,
    ...ofNodes(itemsOf(nodes.data)),
    ...ofOperations(itemsOf(running.data).filter(isOld), (kind) => texts.stuckFor(kind)),
    ...ofOperations(itemsOf(failed.data).filter(isRecent), (kind, { error }) => texts.failed(kind, error)),
  ]
  return (
    <>
      <h2>{texts.needsYou}</h2>
      {troubles.length === 0 ? (
        <Panel>
          <State look="good">{texts.quiet}</State>
        </Panel>
      ) : (
        <Table
          label={texts.needsYou}
          items={troubles}
          hrefOf={({ href }) => href}
          columns={[
            { id: 'what', name: texts.what, cell: ({ what }) => <span dir="auto">{what}</span> },
            { id: 'why', name: texts.why, cell: ({ why }) => <span dir="auto">{why}</span> },
          ]}
        />
      )}
      <Soft>{texts.alerts}</Soft>
    </>
  )
}

type PoolCapacity = ItemOf<'get_capacity'>

const partOf = (used: number, total: number): number => (total === 0 ? 0 : used / total)
/** From here on a pool is nearly full. */
const FULL = 0.9

function Used({
  used,
  total,
  text,
}: {
  readonly used: number
  readonly total: number
  readonly text: string
}): ReactNode {
  const part = partOf(used, total)
  return (
    <Stack gap="tight">
      <span>{text}</span>
      <Bar part={part} label={text} isBad={part >= FULL} />
    </Stack>
  )
}

function Capacity(): ReactNode {
  const texts = o().overview
  const { data } = useList('get_capacity')
  if (data === undefined) return null
  const rows = itemsOf(data).map((each: PoolCapacity) => ({ ...each, id: `${each.zone} ${each.cpu_pool ?? ''}` }))
  return (
    <>
      <h2>{texts.zones}</h2>
      <Table
        label={texts.zones}
        items={rows}
        columns={[
          { id: 'zone', name: t().fields.zone, cell: ({ zone }) => zone },
          { id: 'pool', name: texts.pool, cell: ({ cpu_pool: pool }) => pool ?? '–' },
          { id: 'nodes', name: texts.nodes, cell: ({ node_count: count }) => number(count), isEnd: true },
          {
            id: 'vcpus',
            name: texts.vcpus,
            cell: ({ vcpus, vcpus_used: used }) => (
              <Used used={used} total={vcpus} text={`${number(used)} / ${number(vcpus)}`} />
            ),
          },
          {
            id: 'memory',
            name: texts.memory,
            cell: ({ memory_mebibytes: total, memory_used_mebibytes: used }) => (
              <Used used={used} total={total} text={`${mebibytes(used)} / ${mebibytes(total)}`} />
            ),
          },
          {
            id: 'largest',
            name: texts.largest,
            cell: ({ largest_placeable_plan: plan }) => plan ?? <State look="bad">{texts.noPlan}</State>,
          },
          {
            id: 'headroom',
            name: texts.headroom,
            cell: ({ has_ha_headroom: has }) => (
              <State look={has ? 'good' : 'bad'}>{has ? texts.hasHeadroom : texts.noHeadroom}</State>
            ),
          },
        ]}
      />
    </>
  )
}

const SHOWN_MAXIMUM = 10

function Running(): ReactNode {
  return (
    <>
      <Between>
        <h2>{o().overview.running}</h2>
        <ButtonLink kind="quiet" href={theNoun('operation').path}>
          {t().dashboard.all}
        </ButtonLink>
      </Between>
      <Operations
        query={{ status: ['pending', 'running'] }}
        limit={SHOWN_MAXIMUM}
        none={o().overview.nothingRuns}
        isBusy
      />
    </>
  )
}
