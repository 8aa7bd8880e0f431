/** Network and disk usage of servers: public shapes and routes. */
import { z } from 'zod'
import {
  type BilledTransfer,
  type Month,
  TRANSFER_ALLOWANCE_BYTES,
  TRANSFER_PRICE_MILLICENTS_PER_GIBIBYTE,
} from '../../domain/billing/transfer.ts'
import { METRICS_PERIODS, type MetricsPeriod, type Point, stepSecondsOf } from '../../domain/usage/rules.ts'
import { route } from '../kit/define.ts'
import { DateTime, Id } from '../kit/shapes.ts'

const Count = z.int().min(0)

const MetricsPoint = z
  .strictObject({
    at: DateTime.describe('Start of the step.'),
    network_received_bytes: Count,
    network_transmitted_bytes: Count,
    disk_read_bytes: Count,
    disk_written_bytes: Count,
    disk_read_operations: Count,
    disk_write_operations: Count,
    cpu_seconds: z
      .number()
      .min(0)
      .nullable()
      .describe('Processor time in the step, of all cores together; null when it was not measured.'),
    memory_used_bytes: Count.nullable().describe(
      'Most memory that the guest reported as used in the step; null when it reported none.',
    ),
  })
  .meta({ id: 'MetricsPoint' })
export const MetricsSeries = z
  .strictObject({
    period: z.enum(METRICS_PERIODS),
    step_seconds: z.int(),
    points: z
      .array(MetricsPoint)
      .describe('One point per step, oldest first; zero when nothing was counted. The last step is in progress.'),
  })
  .meta({ id: 'MetricsSeries' })

const MONTH = /^\d{4}-(0[1-9]|1[0-2])$/
export const NetworkTransfer = z
  .strictObject({
    period_start: DateTime,
    period_end: DateTime,
    allowance_bytes_per_server: Count,
    price_per_gibibyte_millicents: Count,
    total_received_bytes: Count,
    total_transmitted_bytes: Count,
    total_billable_bytes: Count,
    total_amount_cents: Count,
    items: z.array(
      z.strictObject({
        server_id: z.string(),
        server_name: z.string(),
        received_bytes: Count,
        transmitted_bytes: Count,
        billable_bytes: Count,
        amount_cents: Count,
      }),
    ),
    daily: z.array(z.strictObject({ date: z.iso.date(), received_bytes: Count, transmitted_bytes: Count })),
  })
  .meta({ id: 'NetworkTransfer' })

export const getServerMetrics = route({
  id: 'get_server_metrics',
  method: 'GET',
  path: '/v1/servers/{id}/metrics',
  summary: 'Get network, disk, processor and memory usage of a server',
  permission: 'read',
  description:
    'Sums for each step of the period, and the most memory in it. Readings arrive about every twenty seconds. The ' +
    'processor time is that of the server on its host. Used memory is what the guest reports through its balloon ' +
    'driver.',
  params: z.strictObject({ id: Id }),
  query: z.strictObject({ period: z.enum(METRICS_PERIODS).default('1h').describe('Length of the series.') }),
  answers: { 200: MetricsSeries },
  refuses: [400, 404],
})
export const getNetworkTransfer = route({
  id: 'get_network_transfer',
  method: 'GET',
  path: '/v1/usage/network-transfer',
  summary: 'Get the network transfer of a month',
  permission: 'billing.read',
  description:
    'Traffic of public interfaces by server and by day, in UTC. Each server has one TiB of free outgoing traffic ' +
    'per month; deleted servers stay listed.',
  query: z.strictObject({
    month: z
      .string()
      .regex(MONTH, 'must be a month, as in 2026-01')
      .optional()
      .describe('The calendar month (UTC) as YYYY-MM; the current one when absent.'),
  }),
  answers: { 200: NetworkTransfer },
  refuses: [400],
})
export const USAGE_ROUTES = [getServerMetrics, getNetworkTransfer] as const

/** Points in chronological order. */
export const toMetricsSeries = (period: MetricsPeriod, points: readonly Point[]): z.infer<typeof MetricsSeries> => ({
  period,
  step_seconds: stepSecondsOf(period),
  points: points.map((point) => ({
    at: point.at.toISOString(),
    network_received_bytes: point.networkReceivedBytes,
    network_transmitted_bytes: point.networkTransmittedBytes,
    disk_read_bytes: point.diskReadBytes,
    disk_written_bytes: point.diskWrittenBytes,
    disk_read_operations: point.diskReadOperations,
    disk_write_operations: point.diskWriteOperations,
    cpu_seconds: point.cpuMilliseconds === null ? null : point.cpuMilliseconds / 1_000,
    memory_used_bytes: point.memoryUsedBytes,
  })),
})

/** Bytes of one calendar month (UTC), by server and by day, with their cost. */
export function toNetworkTransfer(
  { start, end }: Month,
  servers: readonly BilledTransfer[],
  days: readonly { readonly date: string; readonly receivedBytes: number; readonly transmittedBytes: number }[],
): z.infer<typeof NetworkTransfer> {
  const sum = (of: (server: BilledTransfer) => number) => servers.reduce((total, server) => total + of(server), 0)
  return {
    period_start: start.toISOString(),
    period_end: end.toISOString(),
    allowance_bytes_per_server: TRANSFER_ALLOWANCE_BYTES,
    price_per_gibibyte_millicents: TRANSFER_PRICE_MILLICENTS_PER_GIBIBYTE,
    total_received_bytes: sum(({ receivedBytes }) => receivedBytes),
    total_transmitted_bytes: sum(({ transmittedBytes }) => transmittedBytes),
    total_billable_bytes: sum(({ billableBytes }) => billableBytes),
    total_amount_cents: sum(({ amountCents }) => amountCents),
    items: servers.map((server) => ({
      server_id: server.serverId,
      server_name: server.serverName,
      received_bytes: server.receivedBytes,
      transmitted_bytes: server.transmittedBytes,
      billable_bytes: server.billableBytes,
      amount_cents: server.amountCents,
    })),
    daily: days.map((day) => ({
      date: day.date,
      received_bytes: day.receivedBytes,
      transmitted_bytes: day.transmittedBytes,
    })),
  }
}
