/** Which host of control planes the platform has, as the environment says. */
import { readFile } from 'node:fs/promises'
import type { Clock } from '../sys/clock.ts'
import { openControlPlanesClient } from './client.ts'
import type { ControlPlanes } from './control.ts'

/** Of every process that speaks to the host. */
export interface ControlPlanesEnvironment {
  readonly SVCCLOUD_CONTROL_PLANES_URL?: string | undefined
  readonly SVCCLOUD_CONTROL_PLANES_TOKEN_FILE?: string | undefined
  /** Comma separated. */
  readonly SVCCLOUD_CONTROL_PLANES_REGIONS?: string | undefined
  /** Why there is none, for people. */
  readonly SVCCLOUD_CONTROL_PLANES_OBSTACLE?: string | undefined
}

/** What hosts control planes in these regions. */
export interface HostedControlPlanes {
  readonly regions: readonly string[]
  readonly control: ControlPlanes
}

/** What offers it, or why nothing does. */
export type ControlPlanesOffer = HostedControlPlanes | { readonly obstacle: string }

const NOT_CONFIGURED = 'this cloud is not told of any (SVCCLOUD_CONTROL_PLANES_URL)'

/** Throws for settings that are half there, and a token file that cannot be read. */
export async function openControlPlanes(
  environment: ControlPlanesEnvironment,
  clock: Clock,
): Promise<ControlPlanesOffer> {
  const {
    SVCCLOUD_CONTROL_PLANES_URL: url,
    SVCCLOUD_CONTROL_PLANES_TOKEN_FILE: tokenFile,
    SVCCLOUD_CONTROL_PLANES_REGIONS: regions = '',
    SVCCLOUD_CONTROL_PLANES_OBSTACLE: obstacle = NOT_CONFIGURED,
  } = environment
  if (url === undefined) return { obstacle }
  if (tokenFile === undefined) throw new Error('the host of control planes needs its token file')
  const token = (await readFile(tokenFile, 'utf8')).trim()
  return {
    regions: regions.split(',').filter((region) => region !== ''),
    control: openControlPlanesClient({ url, token, clock }),
  }
}

/** What serves the region, or why nothing does, for people. */
export function controlPlanesIn(offer: ControlPlanesOffer, region: string): ControlPlanesOffer {
  if ('obstacle' in offer) return offer
  return offer.regions.includes(region) ? offer : { obstacle: `none is configured for region ${region}` }
}
