/** The bridges between the nodes, in a separate namespace. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { BRIDGE_LINES, OUTSIDE_MAC } from '../../../embedded/ovn/bridges.ts'

const run = promisify(execFile)

test('the machine has the same address outside at every start, for any neighbours', async () => {
  // A bridge without a separate address takes the lowest one of those that are wired to it.
  const wire = [
    'ip link add o0 address 02:00:00:00:00:01 type veth peer name other',
    'ip link set o0 master outside up',
  ]
  const lines = [...BRIDGE_LINES, ...wire, 'ip -o link show outside']
  const { stdout } = await run('unshare', ['--net', 'sh', '-ec', lines.join('\n')])
  expect(stdout).toContain(`link/ether ${OUTSIDE_MAC} `)
})
