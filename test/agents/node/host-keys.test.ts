/** Host keys as guests print them on their consoles. */
import { expect, it } from 'vitest'
import { ConsoleLine } from '../../../agents/node/drivers/hypervisor/console-line.ts'
import { lastHostKeys, openHostKeys } from '../../../agents/node/host-keys.ts'

const key = (fill: number): string => {
  const parts = [Buffer.from('ssh-ed25519'), Buffer.alloc(32, fill)]
  const wire = parts.flatMap((part) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(part.length)
    return [length, part]
  })
  return `ssh-ed25519 ${Buffer.concat(wire).toString('base64')}`
}
const block = (...keys: readonly string[]): string =>
  ['', '-----BEGIN SSH HOST KEY KEYS-----', ...keys, '-----END SSH HOST KEY KEYS-----', ''].join('\r\n')

it('are read from the block, with any text between its lines', () => {
  const noise = '[  OK  ] Reached target cloud-init.target.'
  expect(lastHostKeys(block(`${key(1)} root@web`, noise, key(2)))).toEqual([key(1), key(2)])
  expect(lastHostKeys(`${block(key(1))}${block(key(2))}`)).toEqual([key(2)])
  expect(lastHostKeys(`-----BEGIN SSH HOST KEY KEYS-----\r\n${key(1)}`)).toBeUndefined()
  expect(lastHostKeys(block('ssh-ed25519 AAAA', noise))).toBeUndefined()
})

it('are those that the guest printed first since its start, in pieces of any size', () => {
  const line = new ConsoleLine()
  const hostKeys = openHostKeys({ console: () => line })
  const printed: string[] = []
  hostKeys.onChange((name) => printed.push(name))
  const guest = { name: 'web', incarnation: 1 }
  expect(hostKeys.of(guest)).toBeUndefined()
  for (const piece of block(key(1)).match(/[\s\S]{1,7}/g) ?? []) line.append(Buffer.from(piece))
  expect([printed, hostKeys.of(guest)]).toEqual([['web'], [key(1)]])
  // Whoever has signed in on the console can print there too.
  line.append(Buffer.from(block(key(2))))
  expect([printed, hostKeys.of(guest)]).toEqual([['web'], [key(1)]])
  // The next start may be that of another disk.
  expect(hostKeys.of({ ...guest, incarnation: 2 })).toBeUndefined()
  line.append(Buffer.from(block(key(3))))
  expect(hostKeys.of({ ...guest, incarnation: 2 })).toEqual([key(3)])
})

it('are found again by an agent that comes later, as long as the console has them', () => {
  const line = new ConsoleLine(Buffer.from(block(key(1))))
  expect(openHostKeys({ console: () => line }).of({ name: 'web', incarnation: 1 })).toEqual([key(1)])
})
