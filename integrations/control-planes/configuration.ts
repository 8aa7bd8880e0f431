/** The platform's hosts of control planes, from the settings. */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import type { Clock } from '../../kit/sys/clock.ts'
import { readPemFile, readSecretFile } from '../../kit/sys/secret-file.ts'
import { openControlPlanesClient } from './client.ts'
import type { ControlPlanes } from './control.ts'
import type { ControlPlanesSettings } from './settings.ts'

/** The host of control planes in these regions. */
export interface HostedControlPlanes {
  readonly regions: readonly string[]
  readonly control: ControlPlanes
  /** Hosts of other regions. */
  readonly others?: readonly HostedControlPlanes[]
}

const Hosts = z
  .array(
    z.strictObject({
      url: z.url({ protocol: /^https?$/ }),
      token: z.string().min(1),
      /** PEM. */
      authority: z.string().includes('BEGIN CERTIFICATE').optional(),
      regions: z.array(z.string().min(1)).min(1),
    }),
  )
  .min(1)

/** The configured hosts, or why there are none; and the hosts that the platform has created itself, as of now. */
export type ControlPlanesOffer = (HostedControlPlanes | { readonly obstacle: string }) & {
  readonly ownHosts?: () => readonly HostedControlPlanes[]
}

const NOT_CONFIGURED = 'this cloud has none configured (SVCCLOUD_CONTROL_PLANES_URL, SVCCLOUD_CONTROL_PLANES_FILE)'

/** Throws for incomplete settings, files that cannot be read, and a region with two hosts. */
export async function openControlPlanes(settings: ControlPlanesSettings, clock: Clock): Promise<ControlPlanesOffer> {
  const { controlPlanesObstacle: obstacle = NOT_CONFIGURED, controlPlanesFile: file } = settings
  const listed = file === undefined ? [] : Hosts.parse(JSON.parse(await readFile(file, 'utf8')))
  const hosts = [...(await hostOf(settings)), ...listed].map(({ regions, ...access }) => ({
    regions: regions.filter((region) => region !== ''),
    control: openControlPlanesClient({ ...access, clock }),
  }))
  const regions = hosts.flatMap((host) => host.regions)
  const twice = regions.find((region, index) => regions.indexOf(region) !== index)
  if (twice !== undefined) throw new Error(`region ${twice} has two hosts of control planes`)
  const [first, ...others] = hosts
  return first === undefined ? { obstacle } : { ...first, others }
}

/** The host of the single settings; none if they do not name one. */
async function hostOf(settings: ControlPlanesSettings): Promise<z.infer<typeof Hosts>> {
  const {
    controlPlanesUrl: url,
    controlPlanesTokenFile: tokenFile,
    controlPlanesAuthorityFile: authorityFile,
    controlPlanesRegions: regions = [],
  } = settings
  if (url === undefined) return []
  if (tokenFile === undefined) throw new Error('the host of control planes needs its token file')
  const token = await readSecretFile(tokenFile)
  const authority = authorityFile === undefined ? {} : { authority: await readPemFile(authorityFile) }
  return [{ url, token, ...authority, regions }]
}

/** The hosts of the settings. */
export const configuredHostsOf = (offer: ControlPlanesOffer): readonly HostedControlPlanes[] =>
  'obstacle' in offer ? [] : [offer, ...(offer.others ?? [])]

/** All hosts. A host in the settings replaces a created one of the same region. */
export function hostsOf(offer: ControlPlanesOffer): readonly HostedControlPlanes[] {
  const configured = configuredHostsOf(offer)
  const regions = configured.flatMap((host) => host.regions)
  const ownHosts = offer.ownHosts?.() ?? []
  return [...configured, ...ownHosts.filter((host) => !host.regions.some((region) => regions.includes(region)))]
}

/** The host of the region, or why there is none, for people. */
export function controlPlanesIn(offer: ControlPlanesOffer, region: string): ControlPlanesOffer {
  const host = hostsOf(offer).find(({ regions }) => regions.includes(region))
  if (host !== undefined) return host
  return 'obstacle' in offer ? offer : { obstacle: `none is configured for region ${region}` }
}
