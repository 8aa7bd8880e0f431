/** Requirements of a password: 12 to 128 characters after NFKC, and not one that everybody tries first. No composition
 *  rules. */
import { badField } from '../problem.ts'

const PASSWORD_CHARACTERS_MINIMUM = 12
const PASSWORD_CHARACTERS_MAXIMUM = 128
/** Fewer different characters than this are a pattern, regardless of the length. */
const DISTINCT_CHARACTERS_MINIMUM = 5

/** The form that is hashed: the same password typed on another keyboard or system gives the same text. */
export const normalizePassword = (password: string): string => password.normalize('NFKC')

/** Returns the normalized password, or throws 400. `email` is the address of its account. */
export function acceptPassword(password: string, email: string): string {
  const normalized = normalizePassword(password)
  const length = [...normalized].length
  if (length < PASSWORD_CHARACTERS_MINIMUM || length > PASSWORD_CHARACTERS_MAXIMUM) {
    throw badField(
      'password',
      `must be ${PASSWORD_CHARACTERS_MINIMUM} to ${PASSWORD_CHARACTERS_MAXIMUM} characters long`,
    )
  }
  if (isCommon(normalized) || normalized.toLowerCase().includes(email.toLowerCase()))
    throw badField('password', 'is too easy to guess; choose another one')
  return normalized
}

/** Known words that people stretch to the minimum length with digits, signs or repetition. Lower case, letters only. */
const WORDS = new Set(
  `
password passwort passw pass motdepasse contrasena senha wachtwoord parola haslo heslo salasana lozinka qwerty
qwertyuiop qwertz qwertzuiop azerty azertyuiop asdf asdfgh asdfghjkl zxcvbn zxcvbnm yxcvbnm qazwsx qazwsxedc qweasd
qweasdzxc letmein welcome welcometo willkommen bienvenue bienvenido iloveyou loveyou lovely princess princesse monkey
dragon football baseball basketball superman batman spiderman starwars pokemon minecraft sunshine shadow master killer
freedom whatever trustnoone nothing secret topsecret administrator admin administration root toor superuser user guest
test testing tester testtest demo default changeme changeit changemenow login logmein access server database internet
computer google facebook microsoft windows samsung apple linkedin amazon cloud svccloud correcthorsebatterystaple
abcdefgh abcdefghij abcdefghijkl abcdefghijklm abc abcd abcde abcdef hello helloworld summer winter spring autumn
january february march april june july august september october november december monday tuesday wednesday thursday
friday saturday sunday charlie michael jordan jennifer jessica ashley michelle daniel andrew joshua matthew thomas
robert george nicole hunter buster soccer hockey ranger harley mustang corvette ferrari mercedes porsche yankees
dallas arsenal liverpool chelsea barcelona realmadrid juventus
`
    .trim()
    .split(/\s+/),
)
const RUNS = [
  '01234567890123456789',
  '98765432109876543210',
  'abcdefghijklmnopqrstuvwxyz',
  'zyxwvutsrqponmlkjihgfedcba',
  'qwertyuiopasdfghjklzxcvbnm',
  'qwertzuiopasdfghjklyxcvbnm',
]
const LOOKALIKES: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
  '!': 'i',
}

function isCommon(password: string): boolean {
  const lower = password.toLowerCase()
  if (new Set(lower).size < DISTINCT_CHARACTERS_MINIMUM || RUNS.some((run) => run.includes(lower))) return true
  const spell = (text: string) => text.replace(/[013457@$!]/g, (sign) => LOOKALIKES[sign] ?? sign)
  const trim = (text: string) => text.replace(/^[^a-z]+|[^a-z]+$/g, '')
  return [lower, spell(lower), spell(trim(lower))].some((text) => {
    const core = trim(text)
    const letters = text.replace(/[^a-z]/g, '')
    return WORDS.has(shortestPeriod(core)) || WORDS.has(shortestPeriod(letters))
  })
}

/** `abcabc` is `abc` twice: the piece whose repetition is the text. */
function shortestPeriod(text: string): string {
  for (let length = 1; length <= text.length / 2; length++) {
    if (text.length % length === 0 && text.slice(0, length).repeat(text.length / length) === text)
      return text.slice(0, length)
  }
  return text
}
