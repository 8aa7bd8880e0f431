/** What a load balancer has counted so far: the service keeps no history of it, so there is nothing to draw. */
import type { ReactNode } from 'react'
import type { LoadBalancer, LoadBalancerMetrics } from '../../../client/schema.ts'
import { useRead } from '../../api/cache.ts'
import { bytes, number } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { Button } from '../../ui/button.tsx'
import { Between, Panel, Soft, Stack } from '../../ui/layout.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Unread } from '../../ui/unread.tsx'
import { Time } from '../value.tsx'

export function MetricsTab({ item }: { readonly item: Pick<LoadBalancer, 'id'> }): ReactNode {
  const input = { path: { id: item.id } }
  const { data, error, refetch, isRefetching } = useRead('get_load_balancer_metrics', input, { isAlwaysStale: true })
  if (data === undefined)
    return (
      <Panel>
        <Unread error={error} retry={() => void refetch()} />
      </Panel>
    )
  return (
    <Stack>
      <Between>
        <Soft>{t().balancer.counted}</Soft>
        <Button isBusy={isRefetching} onPress={() => void refetch()}>
          {t().webhook.readAgain}
        </Button>
      </Between>
      <Counts metrics={data} />
    </Stack>
  )
}

function Counts({ metrics }: { readonly metrics: LoadBalancerMetrics }): ReactNode {
  const texts = t().balancer
  const { observed_at: at, frontends, members, omitted_members: omitted } = metrics
  if (at === null)
    return (
      <Panel>
        <Soft>{t().metrics.none}</Soft>
      </Panel>
    )
  return (
    <>
      <Time instant={at} />
      <Table
        label={texts.frontends}
        items={frontends.map((each) => ({ ...each, id: each.name }))}
        columns={[
          { id: 'name', name: texts.frontends, cell: ({ name }) => name },
          ...trafficColumns(),
          { id: 'requests', name: texts.countedRequests, cell: ({ requests }) => number(requests), isEnd: true },
        ]}
      />
      <Table
        label={texts.backend}
        items={members}
        columns={[
          {
            id: 'name',
            name: texts.backend,
            cell: ({ backend, name }) => <span dir="auto">{`${backend} / ${name}`}</span>,
          },
          ...trafficColumns(),
        ]}
        foot={omitted === 0 ? undefined : texts.omitted(omitted)}
      />
    </>
  )
}

type Counted = LoadBalancerMetrics['members'][number] | LoadBalancerMetrics['frontends'][number]

const trafficColumns = (): readonly Column<Counted & { readonly id: string }>[] => [
  { id: 'open', name: t().balancer.open, cell: ({ open_connections: count }) => number(count), isEnd: true },
  { id: 'connections', name: t().balancer.connections, cell: ({ connections }) => number(connections), isEnd: true },
  { id: 'in', name: t().metrics.received, cell: ({ received_bytes: size }) => bytes(size), isEnd: true },
  { id: 'out', name: t().metrics.transmitted, cell: ({ transmitted_bytes: size }) => bytes(size), isEnd: true },
]
