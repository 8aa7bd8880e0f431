/** Decides whether an embedded cloud has a network for its servers, and the message for people. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { variableOf } from '../../kit/sys/settings.ts'
import { type DataFolder, StartRefused } from '../kit/data-folder.ts'
import type { HypervisorChoice, NetworkChoice } from '../options.ts'
import type { StartSettings } from '../start-settings.ts'
import { planFile } from './network.ts'
import { probeNetwork } from './probe.ts'
import type { Programs } from './programs.ts'

export interface NetworkNeeds {
  readonly network: NetworkChoice
  /** The hypervisor of the guests. */
  readonly hypervisor: HypervisorChoice
  readonly hasPublicRoute: boolean
  /** Has the rights to change the machine. */
  readonly hasRoot: boolean
  readonly mayInstall: boolean
  readonly folder: DataFolder
  readonly settings: Pick<StartSettings, 'cephPool' | 'guestNetwork' | 'ovnNorthbound'>
  /** Prints one line for people. */
  readonly print: (line: string) => void
}

/** The programs of the network, or why there is none: half a sentence for people. */
export type NetworkDecision = { readonly programs: Programs } | { readonly obstacle: string }

const OFF =
  'Servers have separate networks: they reach the outside through this machine, and nothing reaches them but ' +
  'their SSH port. Private networks, firewalls, floating IPs and public addresses are off.'
const OVN_NEEDS_QEMU =
  '--network ovn needs real guests, and these are simulated. Leave out --hypervisor simulated, or take --network user.'
const ROUTE_NEEDS_ROOT = '--public-route changes the routes of this machine, which takes the rights of root.'

/** Throws StartRefused when the network was required and is unavailable. */
export async function chooseNetwork(needs: NetworkNeeds): Promise<NetworkDecision> {
  const { network, hypervisor, folder, print, hasPublicRoute, hasRoot } = needs
  if (hypervisor === 'simulated') {
    if (network === 'ovn') throw new StartRefused(OVN_NEEDS_QEMU)
    return { obstacle: 'servers are simulated' }
  }
  if (network === 'user') return { obstacle: 'it was started with --network user' }
  if (hasPublicRoute && !hasRoot) throw new StartRefused(ROUTE_NEEDS_ROOT)
  const earlierObstacle = excludingSetting(needs) ?? (network === 'auto' ? choiceOfBefore(needs) : undefined)
  const found = earlierObstacle ?? (await probeNetwork({ ...needs, folder: join(folder.root, 'programs') }))
  if (typeof found !== 'string') return { programs: found }
  const obstacle = `Open Virtual Network cannot be had: ${found}`
  if (network === 'ovn') throw new StartRefused(obstacle)
  print(
    `${earlierObstacle === undefined ? `WARNING: ${obstacle}` : `No Open Virtual Network: ${earlierObstacle}`}. ${OFF}`,
  )
  return { obstacle: earlierObstacle ?? obstacle }
}

/** QEMU itself opens disks in Ceph, and cannot reach the cluster from a network namespace. */
const excludingSetting = ({ settings }: NetworkNeeds): string | undefined =>
  settings.cephPool === undefined
    ? undefined
    : 'SVCCLOUD_CEPH_POOL is set, and guests in a separate network would not reach the Ceph cluster'

/** Why there is no network by an earlier choice: a setting, or the first start with this folder, whose servers and
 *  zones depend on it. */
function choiceOfBefore({ folder, settings }: NetworkNeeds): string | undefined {
  const chosen = (['guestNetwork', 'ovnNorthbound'] as const).find((field) => settings[field] !== undefined)
  if (chosen !== undefined) return `${variableOf(chosen)} is set`
  return existsSync(folder.catalogFile) && !existsSync(planFile(folder))
    ? 'this folder was started without it (npm start -- --network ovn adds it)'
    : undefined
}
