/** Asking for a password reset: an address that has a user, and gets a mail, against one that has none. */
import type { Bench } from './runner.ts'
import { openStrangers } from './strangers.ts'

export const bench: Bench = {
  name: 'B11 password reset timing',
  question: 'password reset for a known against an unknown address: 1 tells nothing',
  subjectName: 'known addresses',
  peerName: 'unknown addresses',
  unit: 'answers',
  goal: 1,
  async open() {
    const { members, asking, close } = await openStrangers()
    const request = (domain: string) =>
      asking(202, (number) => ({
        method: 'POST',
        path: '/v1/auth/password-reset',
        body: { email: `user-${number % members.length}@${domain}` },
      }))
    return { subject: request('known.example'), peer: request('unknown.example'), close }
  },
}
