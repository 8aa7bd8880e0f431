/** The watcher of addresses is tested as well. */
import { expect, it } from 'vitest'
import { Instance } from '../../resources/instance/index.ts'
import { watchAddresses } from './addresses.ts'

const REVISION = 1
const storageKey = `${Instance.group}/${Instance.plural}`
const instanceOf = (server: string, address: string) => ({
  apiVersion: 'svccloud.dev/v1',
  kind: 'Instance',
  metadata: { name: server, uid: server, creationTimestamp: '2026-01-01T00:00:00Z', resourceVersion: '1' },
  spec: {
    server: { uid: server },
    interfaces: [
      {
        macAddress: server,
        kind: 'public',
        ipv4: { address, prefix: 24, gateway: '198.51.100.1' },
        routedPrefixes: [],
      },
    ],
  },
})

it('finds an address that two servers have at once, and no other', () => {
  const watch = watchAddresses()
  const write = (key: string, object: ReturnType<typeof instanceOf> | undefined) =>
    void watch.storage.append({ revision: REVISION, storageKey, key, object })
  write('node-a/one', instanceOf('one', '198.51.100.2'))
  write('node-b/one', instanceOf('one', '198.51.100.2')) // it moves
  write('node-b/two', instanceOf('two', '198.51.100.3'))
  write('node-b/two', undefined)
  write('node-c/three', instanceOf('three', '198.51.100.3'))
  expect(watch.violations()).toEqual([])
  write('node-c/four', instanceOf('four', '198.51.100.3'))
  expect(watch.violations()).toEqual(['198.51.100.3 is of the servers three and four at once'])
})
