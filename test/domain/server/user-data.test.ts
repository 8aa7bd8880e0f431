import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { readUserData, runsProgramsOnly, UNPACKED_BYTES_MAXIMUM } from '../../../domain/server/user-data.ts'

const read = (given: string | Uint8Array, isProgramsOnly = false) => {
  const found = readUserData(Buffer.from(given as string), { isProgramsOnly })
  return 'bytes' in found ? found.bytes.toString() : found
}
const SCRIPT = '#!/bin/sh\necho "grüße"\n'
const CONFIG = '#cloud-config\npackages: [nginx]\n'

it.each([
  ['a program', SCRIPT, SCRIPT],
  ['a program with line ends of Windows', SCRIPT.replaceAll('\n', '\r\n'), SCRIPT],
  ['a program behind a byte order mark', `\uFEFF${SCRIPT}`, SCRIPT],
  ['a document behind a byte order mark', `\uFEFF${CONFIG}`, CONFIG],
  ['a program in base64', Buffer.from(SCRIPT).toString('base64'), SCRIPT],
  ['a packed program in base64', gzipSync(SCRIPT).toString('base64'), SCRIPT],
  ['the same in lines', `${gzipSync(CONFIG).toString('base64').replace(/.{20}/g, '$&\n')}\n`, CONFIG],
  ['a packed program', gzipSync(SCRIPT), SCRIPT],
  ['a document', CONFIG, CONFIG],
  ['text that is neither', 'key=value\r\n', 'key=value\r\n'],
  ['a word that could be base64', 'abcd', 'abcd'],
  ['nothing', '', ''],
])('hands out %s as a guest can run it', (_what, given, expected) => expect(read(given)).toBe(expected))

it('changes no byte of a program but the ends of its lines', () => {
  const given = Buffer.concat([Buffer.from('#!/bin/sh\r\n'), Buffer.from([0xff, 0x00, 0x0d, 0x80])])
  const found = readUserData(given, { isProgramsOnly: true })
  expect('bytes' in found && [...found.bytes.subarray(-4)]).toEqual([0xff, 0x00, 0x0d, 0x80])
})

it('refuses what does not unpack, or to more than it may', () => {
  const whole = gzipSync(SCRIPT)
  expect(read(whole.subarray(0, 20))).toEqual({ fault: expect.stringContaining('does not unpack') })
  const bomb = gzipSync(Buffer.alloc(UNPACKED_BYTES_MAXIMUM + 1))
  expect(read(bomb.toString('base64'))).toEqual({ fault: expect.stringContaining('does not unpack') })
})

it('refuses documents for cloud-init where a template has none, however they come', () => {
  for (const given of [
    CONFIG,
    `\uFEFF${CONFIG}`,
    gzipSync(CONFIG).toString('base64'),
    'Content-Type: multipart/mixed; b',
  ])
    expect(read(given, true)).toEqual({ fault: expect.stringContaining('cloud-init') })
  expect(read(SCRIPT, true)).toBe(SCRIPT)
  expect([runsProgramsOnly('tiny-linux'), runsProgramsOnly('debian-13'), runsProgramsOnly(undefined)]).toEqual([
    true,
    false,
    false,
  ])
})
