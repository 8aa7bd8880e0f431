/** Identity: sessions, tokens, second factors, lockouts, one-time links by mail, identities at other providers. */
export {
  createEmailToken,
  dropEmailTokens,
  findEmailToken,
  forgetOldEmailTokens,
  spendEmailToken,
} from './email-tokens.ts'
export {
  type LinkedIdentityRow,
  findIdentity,
  linkIdentity,
  listIdentities,
  markIdentityUsed,
  unlinkIdentity,
} from './identities.ts'
export { beginAttempt, forgetAttempts, forgetOldAttempts, waitForAttempt } from './lockouts.ts'
export {
  countRecoveryCodes,
  enableSecondFactor,
  findSecondFactor,
  isSecondFactorRequired,
  removeSecondFactor,
  replaceRecoveryCodes,
  resealSecret,
  spendRecoveryCode,
  spendStep,
  startSetup,
} from './second-factors.ts'
export {
  SESSION_SECONDS,
  type SessionRow,
  createSession,
  endSession,
  endSessionOf,
  endSessionsOfUser,
  findSession,
  forgetOldSessions,
  hashSecret,
  listSessions,
  markActive,
  markSecondFactor,
  mayActFor,
} from './sessions.ts'
export {
  type LiveToken,
  type TokenRow,
  countLiveTokens,
  createToken,
  findTokenNamed,
  findTokens,
  listExpiringTokens,
  listTokens,
  markTokenUsed,
  minuteOf,
  readToken,
  revokeToken,
  revokeTokensOfAccount,
  revokeTokensOfMember,
  revokeTokensOfUser,
  isTokenLive,
} from './tokens.ts'
