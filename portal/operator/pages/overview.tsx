/** `/dashboard` of operators: what needs somebody, capacity by zone, what is in progress, and who waits. */
import type { ReactNode } from 'react'
import { itemsOf, useList, useRead } from '../../api/cache.ts'
import type { ItemOf } from '../../api/operations.ts'
import { useMay } from '../../api/session.ts'
import { Operations } from '../../nouns/activity.tsx'
import { theNoun } from '../../nouns/registry.ts'
import { atLeast, mebibytes, number } from '../../texts/format.ts'
import { nounTexts, t } from '../../texts/index.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Between, Grid, Page, Panel, Stack, Tile } from '../../ui/layout.tsx'
import { Bar, State } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { Unread } from '../../ui/unread.tsx'
import { o } from '../texts/index.ts'
import { Alarms } from './alarms.tsx'

/** Rows of a list that has its own page. */
const SHOWN_MAXIMUM = 10
const FAILED_MAXIMUM = 5

export const OverviewPage = (): ReactNode => {
  const may = useMay()
  return (
    <Page title={t().dashboard.title}>
      <Waiting />
      {may('list_alarms') ? <NeedsYou /> : null}
      {may('get_capacity') ? <Capacity /> : null}
      {may('list_operator_operations') ? <Running /> : null}
    </Page>
  )
}

/** Counts, with links to what they count. */
export function Waiting(): ReactNode {
  const may = useMay()
  const hosts = useList('list_nodes', {}, { isOn: may('list_nodes') })
  const nodes = itemsOf(hosts.data)
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
  const unread = [hosts, quotas, clouds].filter(({ data, fetchStatus, error }) => {
    // a role that may not read it waits for nothing
    const isOff = data === undefined && fetchStatus === 'idle' && error === null
    return data === undefined && !isOff
  })
  const failed = unread.find(({ error }) => error !== null) ?? unread[0]
  if (failed !== undefined)
    return (
      <Panel>
        <Unread error={failed.error} retry={() => void Promise.all(unread.map((each) => each.refetch()))} />
      </Panel>
    )
  return (
    <Grid>
      {nodes.length === 0 ? null : (
        <Tile
          name={o().overview.nodes}
          value={atLeast(nodes.length, hosts.hasNextPage)}
          note={o().overview.readyOf(atLeast(ready, hosts.hasNextPage), atLeast(nodes.length, hosts.hasNextPage))}
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
  readonly list: { readonly data?: Parameters<typeof itemsOf>[0]; readonly hasNextPage: boolean }
}

const Count = ({ name, list }: CountProps): ReactNode =>
  list.data === undefined ? null : (
    <Tile
      name={nounTexts(name).many}
      value={atLeast(itemsOf(list.data).length, list.hasNextPage)}
      note={o().overview.waiting}
      href={theNoun(name).path}
    />
  )

/** What the platform records as wrong, an unhealthy control plane, and what has failed. */
function NeedsYou(): ReactNode {
  const texts = o().overview
  const may = useMay()
  return (
    <>
      <Between>
        <h2>{texts.needsYou}</h2>
        <ButtonLink kind="quiet" href="/alarms">
          {o().overview.allAlarms}
        </ButtonLink>
      </Between>
      {may('get_control_plane') ? <Plane /> : null}
      <Alarms limit={SHOWN_MAXIMUM} />
      {may('list_operator_operations') ? (
        <>
          <h2>{texts.failed}</h2>
          <Operations query={{ status: ['failed'] }} limit={FAILED_MAXIMUM} none={texts.noFailures} />
        </>
      ) : null}
    </>
  )
}

/** Nothing while it is healthy. */
export function Plane(): ReactNode {
  const { data, error, refetch } = useRead('get_control_plane')
  if (data === undefined)
    return (
      <Panel>
        <Unread error={error} retry={() => void refetch()} lines={1} />
      </Panel>
    )
  if (data.quorum && data.members.every(({ is_healthy: is }) => is)) return null
  return (
    <Panel>
      <Between>
        <State look="bad">{o().overview.plane}</State>
        <ButtonLink kind="quiet" href="/control-plane">
          {o().plane.title}
        </ButtonLink>
      </Between>
    </Panel>
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

export function Capacity(): ReactNode {
  const texts = o().overview
  const { data, error, refetch } = useList('get_capacity')
  if (data === undefined)
    return (
      <Panel title={texts.zones}>
        <Unread error={error} retry={() => void refetch()} />
      </Panel>
    )
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
            isText: true,
            cell: ({ has_ha_headroom: has }) => (
              <State look={has ? 'good' : 'bad'}>{has ? texts.hasHeadroom : texts.noHeadroom}</State>
            ),
          },
        ]}
      />
    </>
  )
}

function Running(): ReactNode {
  return (
    <>
      <Between>
        <h2>{o().overview.running}</h2>
        <ButtonLink kind="quiet" href={theNoun('operation').path}>
          {o().overview.allOperations}
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
