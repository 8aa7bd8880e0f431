/** Processor, memory, traffic and disk of a server over time. */
import { type ReactNode, useMemo, useState } from 'react'
import type { MetricsSeries, Server } from '../../../client/schema.ts'
import { useRead } from '../../api/cache.ts'
import { Refusal } from '../../api/refusal.ts'
import { bytes, number } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { Button } from '../../ui/button.tsx'
import { Chart, type ChartProps } from '../../ui/chart.tsx'
import { Loading, Panel, Row, Soft, Stack } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'

const PERIODS = ['1h', '24h', '7d', '30d'] as const
type Period = (typeof PERIODS)[number]

export function MetricsTab({ item }: { readonly item: Server }): ReactNode {
  const [period, setPeriod] = useState<Period>('1h')
  const { data, error } = useRead(
    'get_server_metrics',
    { path: { id: item.id }, query: { period } },
    { isAlwaysStale: true },
  )
  return (
    <Stack>
      <Row>
        {PERIODS.map((each) => (
          <Button
            key={each}
            kind={each === period ? 'plain' : 'quiet'}
            isChosen={each === period}
            onPress={() => setPeriod(each)}
          >
            {t().metrics.periods[each]}
          </Button>
        ))}
      </Row>
      {error instanceof Refusal ? <ProblemView refusal={error} /> : null}
      {data === undefined ? (
        <Panel>
          <Loading lines={5} />
        </Panel>
      ) : (
        <Charts series={data} cores={item.cores} />
      )}
    </Stack>
  )
}

const perSecond = (value: number): string => t().metrics.perSecond(bytes(value))
const operations = (value: number): string => t().metrics.perSecond(number(value, 1))
const inCores = (value: number): string => number(value, 2)
const isMeasured = (values: readonly (number | null)[]): boolean => values.some((value) => value !== null)
const LEAST_BYTES = 1024
const MEBIBYTE = 1024 ** 2
const LEAST_OPERATIONS = 5

function Charts({ series, cores }: { readonly series: MetricsSeries; readonly cores: number }): ReactNode {
  const charts = useMemo(() => chartsOf(series, cores), [series, cores])
  if (series.points.length === 0)
    return (
      <Panel>
        <Soft>{t().metrics.none}</Soft>
      </Panel>
    )
  return (
    <>
      {charts.map((chart) => (
        <Panel key={chart.title}>
          <Chart {...chart} />
        </Panel>
      ))}
    </>
  )
}

/** One for each of what is measured. */
export function chartsOf({ points, step_seconds: step }: MetricsSeries, cores: number): readonly ChartProps[] {
  type Field = Exclude<keyof (typeof points)[number], 'at' | 'cpu_seconds' | 'memory_used_bytes'>
  const times = points.map(({ at }) => Date.parse(at) / 1000)
  const of = (field: Field, name: string) => ({ name, values: points.map((point) => point[field] / step) })
  const texts = t().metrics
  const cpu = points.map(({ cpu_seconds: seconds }) => (seconds === null ? null : seconds / step))
  const memory = points.map(({ memory_used_bytes: used }) => used)
  return [
    ...(isMeasured(cpu)
      ? [
          {
            title: texts.cpu,
            times,
            series: [{ name: texts.coresInUse, values: cpu }] as const,
            format: inCores,
            // those of now: a plan may have had others
            least: cores,
          },
        ]
      : []),
    ...(isMeasured(memory)
      ? [
          {
            title: texts.memory,
            times,
            series: [{ name: texts.used, values: memory }] as const,
            format: bytes,
            least: MEBIBYTE,
          },
        ]
      : []),
    {
      title: texts.network,
      times,
      series: [of('network_received_bytes', texts.received), of('network_transmitted_bytes', texts.transmitted)],
      format: perSecond,
      least: LEAST_BYTES,
    },
    {
      title: texts.disk,
      times,
      series: [of('disk_read_bytes', texts.read), of('disk_written_bytes', texts.written)],
      format: perSecond,
      least: LEAST_BYTES,
    },
    {
      title: texts.diskOperations,
      times,
      series: [of('disk_read_operations', texts.reads), of('disk_write_operations', texts.writes)],
      format: operations,
      least: LEAST_OPERATIONS,
    },
  ]
}
