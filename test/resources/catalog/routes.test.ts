import { expect, test } from 'vitest'
import { defined } from '../../../domain/defined.ts'
import { HA_REASONS } from '../../../domain/zone/high-availability.ts'
import { toZoneView } from '../../../resources/catalog/routes.ts'
import type { ZoneSpec, ZoneStatus } from '../../../resources/catalog/stored.ts'

const publicNetwork: ZoneSpec['publicNetwork'] = {
  physicalNetwork: 'outside',
  addresses: ['198.51.100.2/24'],
  gateways: ['198.51.100.1'],
}
const seen = (haObstacle?: string): ZoneStatus => ({
  state: 'available',
  ...defined({ haObstacle }),
})
const capabilitiesOf = (capabilities: ZoneSpec['capabilities'], more: Partial<ZoneSpec> = {}, status?: ZoneStatus) =>
  toZoneView({
    name: 'z',
    createdAt: '2026-01-01T00:00:00Z',
    isDeleting: false,
    spec: { displayName: 'Z', region: 'r', isClosed: false, capabilities, ...more },
    status,
  }).capabilities

test.each<readonly [string, ReturnType<typeof capabilitiesOf>, readonly string[]]>([
  [
    'what its operator says, as long as nothing is seen of it',
    capabilitiesOf(['rack_spread', 'ha_restart']),
    ['ha_restart', 'rack_spread', 'snapshots', 'custom_images'],
  ],
  [
    'both ways to another node where nothing is in the way',
    capabilitiesOf([], {}, seen()),
    ['live_migration', 'ha_restart', 'snapshots', 'custom_images'],
  ],
  [
    'moves alone where a lost node would take something with it',
    capabilitiesOf(['ha_restart'], {}, seen(HA_REASONS.no_shared_storage)),
    ['live_migration', 'snapshots', 'custom_images'],
  ],
  [
    'neither with one node',
    capabilitiesOf(['ha_restart', 'live_migration'], {}, seen(HA_REASONS.one_node)),
    ['snapshots', 'custom_images'],
  ],
  [
    'public addresses with a network that leads outside only',
    capabilitiesOf(['public_ipv4', 'public_ipv6']),
    ['snapshots', 'custom_images'],
  ],
  [
    'no public addresses that no pool gives, whatever its operator says',
    capabilitiesOf(['public_ipv6'], { publicNetwork }),
    ['snapshots', 'custom_images'],
  ],
  [
    'public addresses of the families that its pools give',
    capabilitiesOf([], { publicNetwork }, { ...seen(HA_REASONS.one_node), publicFamilies: ['ipv6'] }),
    ['public_ipv6', 'snapshots', 'custom_images'],
  ],
  [
    'shared storage where its hosts reach some',
    capabilitiesOf([], {}, { ...seen(HA_REASONS.one_node), hasSharedStorage: true }),
    ['snapshots', 'custom_images', 'shared_storage'],
  ],
  [
    'snapshots wherever it is, and backups where a host has a place for them',
    capabilitiesOf([], {}, { ...seen(HA_REASONS.one_node), hasBackups: true }),
    ['backups', 'snapshots', 'custom_images'],
  ],
])('a zone shows %s', (_which, shown, expected) => expect(shown).toEqual(expected))
