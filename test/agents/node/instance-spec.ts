/** An Instance's spec as the controllers write it. */
import type { InstanceSpec } from '../../../resources/instance/index.ts'

export const instanceSpec = (over: Partial<InstanceSpec> = {}): InstanceSpec => ({
  server: { namespace: 'acct-1', name: 'server-1', uid: 'server-uid-1' },
  hostname: 'web-1',
  power: 'running',
  incarnation: 1,
  cores: 1,
  memoryMebibytes: 128,
  disks: [{ volume: 'boot', serial: 'boot' }],
  interfaces: [{ macAddress: '52:54:00:12:34:56', kind: 'public' }],
  template: 'tiny-linux',
  metadata: {
    isEnabled: true,
    id: 'server-1',
    title: 'Web',
    zone: 'fsn-1',
    region: 'fsn',
    plan: 'starter-1',
    publicKeys: [],
    labels: {},
  },
  ...over,
})
