/** The hosts of control planes that the platform has created, with clients for them. Readers get the hosts of the last
 *  read. */
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { Outages } from '../../kit/sys/outages.ts'
import { openControlPlanesClient } from './client.ts'
import type { HostedControlPlanes } from './configuration.ts'

export interface MadeHost {
  readonly region: string
  readonly url: string
  readonly token: string
  /** PEM. */
  readonly authority: string
  /** Name in its certificate. */
  readonly serverName: string
}

export interface MadeHosts {
  readonly hosts: () => readonly HostedControlPlanes[]
  /** Reads the hosts now. Throws read errors; then the known hosts stay. */
  read(): Promise<void>
  /** Reads repeatedly until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

const READ_MILLISECONDS = 5_000

export function openMadeHosts({
  read,
  clock,
  log,
}: {
  readonly read: () => Promise<readonly MadeHost[]>
  readonly clock: Clock
  readonly log: Logger
}): MadeHosts {
  let known = new Map<string, HostedControlPlanes>()
  const hosts: MadeHosts = {
    hosts: () => [...known.values()],
    async read() {
      const found = await read()
      known = new Map(
        found.map((host) => {
          const key = JSON.stringify(host)
          return [key, known.get(key) ?? hostedBy(host, clock)]
        }),
      )
    },
    async run(signal) {
      const outages = new Outages({ log, clock }, 'hosts of control planes not read')
      while (!signal.aborted) {
        await outages.attempt(() => hosts.read())
        await clock.sleep(READ_MILLISECONDS, signal)
      }
    },
  }
  return hosts
}

const hostedBy = ({ region, ...access }: MadeHost, clock: Clock): HostedControlPlanes => ({
  regions: [region],
  control: openControlPlanesClient({ ...access, clock }),
})
