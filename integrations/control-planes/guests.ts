/** Control planes with a guest: the release of a new one. */
import { unavailable } from '../../domain/problem.ts'
import type { ControlPlaneOffer } from './control.ts'

/** The newest release. Throws 503 when the host has no guests, or no memory for another one. */
export function guestRelease({ releases, guests, memoryBytes, reservedBytes }: ControlPlaneOffer): string {
  const release = releases.at(-1)
  if (guests.obstacle !== '' || release === undefined)
    throw unavailable('not_configured', `No playgrounds are offered: ${guests.obstacle}.`)
  if (reservedBytes + guests.bytesOfOne > memoryBytes)
    throw unavailable('no_capacity', 'There is no room for another playground now. Try again later.')
  return release
}
