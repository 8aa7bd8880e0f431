import { describe, expect, test } from 'vitest'
import { networkVerdict, NETWORK_FEATURES } from '../../../domain/network/guest-network.ts'

const { public: publicNetwork, outbound, isolated, metadata } = NETWORK_FEATURES

describe('what is off for a server', () => {
  test.each([
    [
      'nothing, where its zone has a network that leads outside',
      [publicNetwork, metadata],
      true,
      true,
      'PublicNetwork',
      /^$/,
    ],
    [
      'the metadata service alone, where only that is missing',
      [publicNetwork],
      true,
      false,
      'PublicNetwork',
      /^The metadata service does not answer\.$/,
    ],
    [
      'the outside, where the zone has no way there',
      [publicNetwork, metadata],
      false,
      false,
      'NoWayOutside',
      /reach each other.*outside/,
    ],
    [
      'its public addresses and other servers, where QEMU is its network',
      ['ssh-forward', outbound, metadata],
      false,
      false,
      'UserModeNetworking',
      /Neither other servers.*public addresses do not work\.$/,
    ],
    [
      'the same in a zone with a way outside that its host has no part in',
      [outbound, metadata],
      true,
      false,
      'UserModeNetworking',
      /addresses do not work/,
    ],
    ['everything, where guests are isolated', [isolated, metadata], false, false, 'Isolated', /reaches nothing/],
    ['everything, where guests are simulated', [], false, false, 'Simulated', /is simulated/],
  ] as const)('%s', (_what, features, hasWayOutside, isWhole, reason, message) => {
    const verdict = networkVerdict(features, hasWayOutside)
    expect(verdict).toMatchObject({ isWhole, reason })
    expect(verdict.message).toMatch(message)
  })
})
