import { expect, test } from 'vitest'
import { parseMounts } from '../../../kit/sys/mounts.ts'

test('mounts are read as the kernel writes them', () => {
  const text = [
    '36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue',
    String.raw`37 35 7:3 / /a\040b rw shared:1 master:2 - ext4 /dev/loop3 rw`,
    '38 35 0:6 /loop4 /raw rw - devtmpfs udev rw',
    '',
  ].join('\n')
  expect(parseMounts(text)).toEqual([
    { path: '/mnt2', root: '/mnt1', device: '98:0', type: 'ext3', source: '/dev/root' },
    { path: '/a b', root: '/', device: '7:3', type: 'ext4', source: '/dev/loop3' },
    { path: '/raw', root: '/loop4', device: '0:6', type: 'devtmpfs', source: 'udev' },
  ])
})
