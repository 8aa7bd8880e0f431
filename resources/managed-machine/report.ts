/** What a managed machine says of itself. It is a guest, and whoever has broken into it says what they like: everything
 *  is bounded and checked before it is believed, and nothing but the health of its owner follows from it. */
import { z } from 'zod'

/** Of the report as JSON. */
export const MACHINE_REPORT_BYTES_MAXIMUM = 16_384
const DETAIL_CHARACTERS_MAXIMUM = 300
const NAME_CHARACTERS_MAXIMUM = 160
const LINES_MAXIMUM = 1_024

export const MACHINE_SERVICES = ['haproxy', 'watch', 'keepalived', 'nat64', 'dns64', 'bastion', 'postgresql'] as const
export type MachineService = (typeof MACHINE_SERVICES)[number]

const Count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
const Name = z.string().max(NAME_CHARACTERS_MAXIMUM)
/** How HAProxy judges a server of a backend. */
export const SERVER_STATUSES = ['up', 'down', 'maint', 'drain', 'unchecked'] as const

export const MachineReport = z.strictObject({
  /** Those that the document has. */
  services: z.partialRecord(
    z.enum(MACHINE_SERVICES),
    z.strictObject({ isRunning: z.boolean(), detail: z.string().max(DETAIL_CHARACTERS_MAXIMUM).optional() }),
  ),
  keepalived: z.strictObject({ state: z.enum(['master', 'backup', 'fault', 'unknown']) }).optional(),
  haproxy: z
    .strictObject({
      /** Name, open connections, connections so far, bytes in, bytes out, requests so far. */
      frontends: z.array(z.tuple([Name, Count, Count, Count, Count, Count])).max(LINES_MAXIMUM),
      /** Backend, name, status, open connections, connections so far, bytes in, bytes out. */
      servers: z.array(z.tuple([Name, Name, z.enum(SERVER_STATUSES), Count, Count, Count, Count])).max(LINES_MAXIMUM),
      /** Servers that the report has no room for. */
      omitted: Count.optional(),
    })
    .optional(),
})
export type MachineReport = z.infer<typeof MachineReport>

/** What the script answers to whatever it is asked. */
export const MachineAnswer = z.strictObject({
  /** uid of the Server whose document it runs; empty before the first. */
  machine: z.string().max(63),
  generation: Count,
  fingerprint: z.string().max(64),
  isHealthy: z.boolean(),
  /** Why it is not, or why what was delivered is not what runs. */
  detail: z.string().max(1_024),
  report: MachineReport,
})
export type MachineAnswer = z.infer<typeof MachineAnswer>

/** The report in the status; undefined without one, and for what is no report. */
export function reportOf(text: string | undefined): MachineReport | undefined {
  if (text === undefined) return undefined
  try {
    return MachineReport.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
