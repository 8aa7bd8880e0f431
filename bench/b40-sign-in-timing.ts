/** Sign-in with a wrong password: an address that has a user against one that has none. A difference in time would
 *  reveal who is a customer. */
import type { Bench } from './runner.ts'
import { openStrangers } from './strangers.ts'

export const bench: Bench = {
  name: 'B40 sign-in timing',
  question: 'wrong password for a known against an unknown address: 1 tells nothing',
  subjectName: 'known addresses',
  peerName: 'unknown addresses',
  unit: 'refusals',
  goal: 0.9,
  tier: 'database',
  async open(round) {
    const { members, asking, close } = await openStrangers(round)
    const refuse = (domain: string) =>
      asking(401, (number) => ({
        method: 'POST',
        path: '/v1/auth/login',
        body: { email: `user-${number % members.length}@${domain}`, password: 'not the password' },
      }))
    return { subject: refuse('known.example'), peer: refuse('unknown.example'), close }
  },
}
