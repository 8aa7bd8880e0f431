import { crc32, inflateRawSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { zipOf } from '../../tools/zip.ts'

test('an archive has the program, which may be run', () => {
  const content = Buffer.from('#!/bin/sh\necho hello\n'.repeat(100))
  const archive = zipOf('program_v1', content)
  const end = archive.subarray(-22)
  expect(end.toString('latin1', 0, 4)).toBe('PK\u0005\u0006')
  const central = archive.subarray(end.readUInt32LE(16))
  expect(central.toString('latin1', 0, 4)).toBe('PK\u0001\u0002')
  expect(central.readUInt32LE(38) >>> 16).toBe(0o100755)
  expect(central.toString('utf8', 46, 46 + central.readUInt16LE(28))).toBe('program_v1')
  const start = 30 + archive.readUInt16LE(26)
  const unpacked = inflateRawSync(archive.subarray(start, start + archive.readUInt32LE(18)))
  expect(unpacked).toEqual(content)
  expect(archive.readUInt32LE(14)).toBe(crc32(content))
  expect(zipOf('program_v1', content)).toEqual(archive)
})
