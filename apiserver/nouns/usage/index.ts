/** The traffic of servers: series for charts, and the month's transfer for the bill. */
import { listDailyTransfers, listMetrics, listServerTransfers } from '../../../db/usage/index.ts'
import { badField } from '../../../domain/problem.ts'
import { billTransfer, monthAround, monthOf } from '../../../domain/billing/transfer.ts'
import { seriesOf, seriesStart, stepSecondsOf } from '../../../domain/usage/rules.ts'
import { type Endpoint, customerEndpoint } from '../../../kit/http/endpoint.ts'
import {
  getNetworkTransfer,
  getServerMetrics,
  toMetricsSeries,
  toNetworkTransfer,
} from '../../../resources/usage/index.ts'
import type { Parts } from '../../kit/parts.ts'
import type { Servers } from '../server/index.ts'
import { noun } from '../../kit/noun.ts'

function usageEndpoints({ db }: Parts, servers: Servers): readonly Endpoint[] {
  return [
    customerEndpoint(getServerMetrics, async ({ caller, params, query: { period }, now }) => {
      const {
        metadata: { uid = '' },
      } = await servers.read(caller.accountId, params.id)
      const points = await listMetrics(db, uid, stepSecondsOf(period), seriesStart(period, now))
      return { status: 200, body: toMetricsSeries(period, seriesOf(period, points, now)) }
    }),
    customerEndpoint(getNetworkTransfer, async ({ caller, query, now }) => {
      const month = query.month === undefined ? monthAround(now) : monthOf(query.month)
      if (month === undefined) throw badField('month', 'must be a calendar month, as in 2026-01')
      const transfers = await listServerTransfers(db, caller.accountId, month)
      return {
        status: 200,
        body: toNetworkTransfer(
          month,
          transfers.map(billTransfer),
          await listDailyTransfers(db, caller.accountId, month),
        ),
      }
    }),
  ]
}

export const usage = noun<Parts & { readonly servers: Servers }>({
  name: 'usage',
  endpoints: (parts) => usageEndpoints(parts, parts.servers),
})
