/** What is billed, and in which units: the types of usage, invoices and prices. The meter can record no other type. */
import { TRANSFER_ALLOWANCE_BYTES } from './transfer.ts'

export const PRICE_UNITS = ['each', 'gibibyte', 'gibibyte_transmitted'] as const
export type PriceUnit = (typeof PRICE_UNITS)[number]

/** Everything that costs, with the unit of its price. Traffic is billed by the month, everything else by the hour. */
const UNITS = {
  server: 'each',
  public_ipv4: 'each',
  floating_ip: 'each',
  edge: 'each',
  load_balancer: 'each',
  kubernetes_cluster: 'each',
  storage: 'gibibyte',
  snapshot: 'gibibyte',
  backup: 'gibibyte',
  custom_image: 'gibibyte',
  object_storage: 'gibibyte',
  network_transfer: 'gibibyte_transmitted',
} as const satisfies Readonly<Record<string, PriceUnit>>
export type BilledType = keyof typeof UNITS
/** Types that are billed by the hour. */
export type HourlyType = Exclude<BilledType, 'network_transfer'>

export const unitOf = (type: BilledType): PriceUnit => UNITS[type]
/** Prices of other types are not used. */
export const isBilledType = (type: string): type is BilledType => Object.hasOwn(UNITS, type)

const GIBIBYTE = 2 ** 30
/** Units that cost nothing in a month. */
export const FREE_UNITS: Readonly<Partial<Record<BilledType, number>>> = {
  network_transfer: TRANSFER_ALLOWANCE_BYTES / GIBIBYTE,
}
