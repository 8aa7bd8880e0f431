/** Requesting a password reset: an address that has a user, and gets a mail, against one that has none. */
import type { Bench } from './runner.ts'
import { openStrangers } from './strangers.ts'

export const bench: Bench = {
  name: 'B41 password reset timing',
  question: 'password reset for a known against an unknown address: 1 tells nothing',
  subjectName: 'known addresses',
  peerName: 'unknown addresses',
  unit: 'answers',
  goal: 0.9,
  tier: 'database',
  async open(round) {
    const { members, asking, close } = await openStrangers(round)
    const request = (domain: string) =>
      asking(202, (number) => ({
        method: 'POST',
        path: '/v1/auth/password-reset',
        body: { email: `user-${number % members.length}@${domain}` },
      }))
    return { subject: request('known.example'), peer: request('unknown.example'), close }
  },
}
