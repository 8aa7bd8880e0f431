/** Second factor, recovery codes and password of the signed-in person. */
import { type ReactNode, useState } from 'react'
import type { AuthenticatorSetup } from '../../../client/schema.ts'
import { readAgain, useRead } from '../../api/cache.ts'
import { call } from '../../api/client.ts'
import { Refusal } from '../../api/refusal.ts'
import { useMay, useMe } from '../../api/session.ts'
import { useQuestion } from '../../nouns/ask.tsx'
import { t } from '../../texts/index.ts'
import { settingsTexts } from '../../texts/settings.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { PasswordField, Switch, TextField } from '../../ui/field.tsx'
import { Facts, Loading, Panel, Row, Stack } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { State } from '../../ui/state.tsx'
import { notify } from '../../ui/toast.tsx'
import { RecoveryCodes } from '../recovery-codes.tsx'
import { AuthenticatorCode } from '../second-factor.tsx'
import { useSubmission } from '../submission.ts'

type Ask = 'setup' | 'codes' | 'disable' | 'password'

export function Security(): ReactNode {
  const [ask, setAsk] = useState<Ask>()
  const { data, error } = useRead('get_account_mfa', {}, { isAlwaysStale: true })
  const close = (): void => {
    setAsk(undefined)
    void readAgain('get_account_mfa')
  }
  if (data === undefined && error instanceof Refusal) return <ProblemView refusal={error} />
  if (data === undefined) return <Loading />
  const texts = settingsTexts().security
  return (
    <Stack>
      <Panel title={t().factor.title}>
        <State look={data.totp_enabled ? 'good' : 'off'}>
          {data.totp_enabled ? texts.on(data.recovery_codes_remaining) : texts.off}
        </State>
        <Row>
          {data.totp_enabled ? (
            <>
              <Button onPress={() => setAsk('codes')}>{texts.newCodes}</Button>
              <Button why={data.required_by_account ? texts.required : undefined} onPress={() => setAsk('disable')}>
                {texts.turnOff}
              </Button>
            </>
          ) : (
            <Button
              kind="primary"
              why={data.available ? undefined : texts.notAvailable}
              onPress={() => setAsk('setup')}
            >
              {t().factor.setUp}
            </Button>
          )}
        </Row>
        <Policy isRequired={data.required_by_account} hasOwn={data.totp_enabled} />
      </Panel>
      <Panel title={t().sign.password}>
        <div>
          <Button onPress={() => setAsk('password')}>{texts.changePassword}</Button>
        </div>
      </Panel>
      <Identities />
      {ask === 'setup' ? <Setup close={close} /> : null}
      {ask === 'codes' || ask === 'disable' ? <Proof ask={ask} close={close} /> : null}
      {ask === 'password' ? <Password close={close} hasFactor={data.totp_enabled} /> : null}
    </Stack>
  )
}

/** Providers that the person signs in with, which can be unlinked. */
function Identities(): ReactNode {
  const identities = useMe()?.identities ?? []
  const [question, dialog] = useQuestion(['get_current_user'])
  const texts = settingsTexts().security
  if (identities.length === 0) return null
  return (
    <Panel title={texts.identities}>
      <Facts
        facts={identities.map(({ id, provider_name: provider, subject_hint: hint }) => ({
          name: provider,
          value: (
            <Row>
              <span dir="auto">{hint}</span>
              <Button
                kind="quiet"
                onPress={() =>
                  question({
                    operation: 'unlink_sign_in_identity',
                    path: { id },
                    title: t().choices.confirm(texts.unlink, provider),
                    button: texts.unlink,
                    goes: [texts.goesIdentity(provider)],
                  })
                }
              >
                {texts.unlink}
              </Button>
            </Row>
          ),
        }))}
      />
      {dialog}
    </Panel>
  )
}

function Policy({ isRequired, hasOwn }: { readonly isRequired: boolean; readonly hasOwn: boolean }): ReactNode {
  const may = useMay()
  const [refusal, setRefusal] = useState<Refusal>()
  if (!may('set_account_mfa_policy')) return null
  const set = async (required: boolean): Promise<void> => {
    try {
      await call('set_account_mfa_policy', { body: { required } })
      setRefusal(undefined)
    } catch (error) {
      if (error instanceof Refusal) setRefusal(error)
    }
    await readAgain('get_account_mfa')
  }
  return (
    <>
      <Switch
        label={settingsTexts().security.policy}
        note={hasOwn ? settingsTexts().security.policyNote : settingsTexts().security.policyOwn}
        isOn={isRequired}
        isOff={!hasOwn && !isRequired}
        onChange={(isOn) => void set(isOn)}
      />
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
    </>
  )
}

interface DialogOf {
  readonly close: () => void
}

function Setup({ close }: DialogOf): ReactNode {
  const [setup, setSetup] = useState<AuthenticatorSetup>()
  const [codes, setCodes] = useState<readonly string[]>()
  const [code, setCode] = useState('')
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    if (setup === undefined) setSetup(await call('start_account_totp_setup'))
    else setCodes((await call('finish_account_totp_setup', { body: { code } })).recovery_codes)
  })
  return (
    <Dialog title={t().factor.setUp} onClose={close} isFirm={codes !== undefined}>
      {codes !== undefined ? (
        <RecoveryCodes codes={codes} onKept={close} />
      ) : (
        <form className="form" onSubmit={onSubmit} noValidate>
          <p>{settingsTexts().security.setUpNote}</p>
          {setup === undefined ? null : (
            <>
              <AuthenticatorCode uri={setup.otpauth_uri} secret={setup.secret} />
              <TextField label={t().factor.code} value={code} onChange={setCode} inputMode="numeric" autoFocus />
            </>
          )}
          {refusal === undefined ? null : <ProblemView refusal={refusal} />}
          <End close={close} isBusy={isBusy} name={t().factor.continue} />
        </form>
      )}
    </Dialog>
  )
}

const End = ({ close, isBusy, name }: DialogOf & { readonly isBusy: boolean; readonly name: string }): ReactNode => (
  <div className="dialog-end">
    <Button onPress={close}>{t().ui.cancel}</Button>
    <Button kind="primary" type="submit" isBusy={isBusy}>
      {name}
    </Button>
  </div>
)

/** A current code, before something is weakened. */
function Proof({ ask, close }: DialogOf & { readonly ask: 'codes' | 'disable' }): ReactNode {
  const [code, setCode] = useState('')
  const [codes, setCodes] = useState<readonly string[]>()
  const proof = /^\d{6}$/.test(code) ? { code } : { recovery_code: code }
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    if (ask === 'codes') return setCodes((await call('replace_account_recovery_codes', { body: proof })).recovery_codes)
    await call('disable_account_totp', { body: proof })
    close()
  })
  const name = ask === 'codes' ? settingsTexts().security.newCodes : settingsTexts().security.turnOff
  return (
    <Dialog title={name} onClose={close} isFirm={codes !== undefined}>
      {codes !== undefined ? (
        <RecoveryCodes codes={codes} onKept={close} />
      ) : (
        <form className="form" onSubmit={onSubmit} noValidate>
          <TextField label={settingsTexts().security.codeOrRecovery} value={code} onChange={setCode} autoFocus />
          {refusal === undefined ? null : <ProblemView refusal={refusal} />}
          <End close={close} isBusy={isBusy} name={name} />
        </form>
      )}
    </Dialog>
  )
}

function Password({ close, hasFactor }: DialogOf & { readonly hasFactor: boolean }): ReactNode {
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const [code, setCode] = useState('')
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    await call('change_password', {
      body: { current_password: current, password: next, ...(hasFactor ? { code } : {}) },
    })
    notify(t().reset.done)
    close()
  })
  return (
    <Dialog title={settingsTexts().security.changePassword} onClose={close}>
      <form className="form" onSubmit={onSubmit} noValidate>
        <PasswordField
          label={settingsTexts().security.current}
          value={current}
          onChange={setCurrent}
          wrong={refusal?.fields['current_password']}
          autoFocus
        />
        <PasswordField
          label={t().sign.newPassword}
          note={t().signUp.rules}
          autoComplete="new-password"
          value={next}
          onChange={setNext}
          wrong={refusal?.fields['password']}
        />
        {hasFactor ? <TextField label={t().factor.code} value={code} onChange={setCode} inputMode="numeric" /> : null}
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <End close={close} isBusy={isBusy} name={t().ui.save} />
      </form>
    </Dialog>
  )
}
