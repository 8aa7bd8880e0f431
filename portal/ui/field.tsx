/** Fields of forms: a label, a note, what is wrong, and the control. */
import './field.css'
import { Check, ChevronsUpDown, Eye, EyeOff, Minus, Plus, X } from 'lucide-react'
import { type ReactNode, useId, useState } from 'react'
import {
  Button as AriaButton,
  Checkbox as AriaCheckbox,
  FieldError,
  Input,
  Label,
  ListBox,
  ListBoxItem,
  Popover,
  Radio,
  RadioGroup,
  Select as AriaSelect,
  SelectValue,
  Switch as AriaSwitch,
  Text,
  TextArea,
  TextField as AriaTextField,
} from 'react-aria-components'
import { defined } from '../../domain/defined.ts'
import { t } from '../texts/index.ts'
import { Button } from './button.tsx'

interface Common {
  readonly label: string
  readonly note?: string | undefined
  readonly wrong?: string | undefined
  readonly isRequired?: boolean | undefined
  readonly autoFocus?: boolean | undefined
  readonly name?: string | undefined
}

export interface TextFieldProps extends Common {
  readonly value: string
  readonly onChange: (value: string) => void
  readonly type?: 'text' | 'email' | 'password' | 'search' | 'url' | 'datetime-local'
  readonly autoComplete?: string
  readonly isLong?: boolean
  readonly isCode?: boolean
  readonly unit?: string | undefined
  readonly inputMode?: 'decimal' | 'numeric' | 'text'
  readonly isLabelHidden?: boolean
  readonly placeholder?: string
}

const Caption = ({ label, isRequired }: Pick<Common, 'label' | 'isRequired'>): ReactNode => (
  <Label className="label">
    {label} {isRequired === false ? <span className="optional">{t().ui.optional}</span> : null}
  </Label>
)

const Notes = ({ note, wrong }: Pick<Common, 'note' | 'wrong'>): ReactNode => (
  <>
    {note === undefined ? null : (
      <Text slot="description" className="note">
        {note}
      </Text>
    )}
    {wrong === undefined ? null : <FieldError className="wrong">{wrong}</FieldError>}
  </>
)

export function TextField(props: TextFieldProps): ReactNode {
  const { value, onChange, type = 'text', isLong = false, isCode = false, unit, inputMode, isLabelHidden } = props
  const className = `input ${isCode ? 'code' : ''}`
  return (
    <AriaTextField
      className="field"
      value={value}
      onChange={onChange}
      type={type}
      isInvalid={props.wrong !== undefined}
      autoFocus={props.autoFocus === true}
      autoComplete={props.autoComplete ?? 'off'}
      {...defined({ name: props.name, inputMode })}
      {...(isLabelHidden === true ? { 'aria-label': props.label } : {})}
      {...(props.isRequired === true ? { 'aria-required': true } : {})}
    >
      {isLabelHidden === true ? null : <Caption {...props} />}
      {isLong ? (
        <TextArea className={className} rows={isCode ? 8 : 4} spellCheck={!isCode} />
      ) : unit === undefined ? (
        <Input className={className} placeholder={props.placeholder ?? ''} spellCheck={false} />
      ) : (
        <div className="with-unit">
          <Input className={className} />
          <span aria-hidden="true">{unit}</span>
        </div>
      )}
      <Notes {...props} />
    </AriaTextField>
  )
}

/** A password, which can be shown while it is typed. */
export function PasswordField(props: Omit<TextFieldProps, 'type' | 'isLong'>): ReactNode {
  const [isShown, setShown] = useState(false)
  return (
    <AriaTextField
      className="field"
      value={props.value}
      onChange={props.onChange}
      type={isShown ? 'text' : 'password'}
      isInvalid={props.wrong !== undefined}
      autoComplete={props.autoComplete ?? 'current-password'}
      autoFocus={props.autoFocus === true}
    >
      <Caption {...props} />
      <div className="with-unit">
        <Input className="input" spellCheck={false} />
        <PasswordEye isShown={isShown} setShown={setShown} />
      </div>
      <Notes {...props} />
    </AriaTextField>
  )
}

const PasswordEye = (props: { readonly isShown: boolean; readonly setShown: (shown: boolean) => void }): ReactNode => (
  <AriaButton
    className="eye"
    aria-label={props.isShown ? t().ui.hidePassword : t().ui.showPassword}
    onPress={() => props.setShown(!props.isShown)}
    excludeFromTabOrder={false}
  >
    {props.isShown ? <EyeOff aria-hidden="true" /> : <Eye aria-hidden="true" />}
  </AriaButton>
)

export interface Option {
  readonly id: string
  readonly name: string
  readonly note?: string | undefined
  /** At the end of a card, such as a price. */
  readonly end?: string | undefined
  /** Why it cannot be chosen now. */
  readonly why?: string | undefined
}

export interface ChoiceProps extends Common {
  readonly options: readonly Option[]
  readonly value: string | undefined
  readonly onChange: (value: string | undefined) => void
  /** Shown while there is nothing to choose. */
  readonly none?: string
}

/** A list that opens. */
export function SelectField(props: ChoiceProps): ReactNode {
  const { options, value, onChange } = props
  return (
    <AriaSelect
      className="field"
      value={value ?? null}
      onChange={(key) => onChange(key === null ? undefined : String(key))}
      isInvalid={props.wrong !== undefined}
      placeholder={options.length === 0 ? (props.none ?? t().ui.nothing) : t().ui.choose}
    >
      <Caption {...props} />
      <AriaButton className="input select-button">
        <SelectValue<Option>>
          {({ selectedItems, defaultChildren, isPlaceholder }) =>
            isPlaceholder ? defaultChildren : (selectedItems[0]?.name ?? defaultChildren)
          }
        </SelectValue>
        <ChevronsUpDown aria-hidden="true" />
      </AriaButton>
      <Notes {...props} />
      <Popover className="popover select-popover" offset={4}>
        <ListBox className="options" items={options}>
          {(option) => (
            <ListBoxItem
              id={option.id}
              textValue={option.name}
              className="option"
              isDisabled={option.why !== undefined}
            >
              <Text slot="label">{option.name}</Text>
              {(option.why ?? option.note) === undefined ? null : (
                <Text slot="description" className="note">
                  {option.why ?? option.note}
                </Text>
              )}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </AriaSelect>
  )
}

/** A few choices, all in sight. */
export function CardsField({ options, value, onChange, ...props }: ChoiceProps): ReactNode {
  return (
    <RadioGroup
      className="field"
      value={value ?? null}
      onChange={onChange}
      isInvalid={props.wrong !== undefined}
      orientation="horizontal"
    >
      <Caption {...props} />
      <Notes {...props} />
      {options.length === 0 ? <p className="note">{props.none ?? t().ui.nothing}</p> : null}
      <div className="cards">
        {options.map((option) => (
          <Radio key={option.id} value={option.id} className="card-choice" isDisabled={option.why !== undefined}>
            <strong>{option.name}</strong>
            {(option.why ?? option.note) === undefined ? null : (
              <span className="note">{option.why ?? option.note}</span>
            )}
            {option.end === undefined ? null : <span className="end">{option.end}</span>}
          </Radio>
        ))}
      </div>
    </RadioGroup>
  )
}

export interface ToggleProps {
  readonly label: string
  readonly note?: string | undefined
  readonly isOn: boolean
  readonly onChange: (isOn: boolean) => void
  readonly isOff?: boolean
}

export interface SwitchProps extends ToggleProps {
  readonly wrong?: string | undefined
}

export function Switch({ label, note, wrong, isOn, onChange, isOff = false }: SwitchProps): ReactNode {
  const fault = useId()
  return (
    <div className="field" {...(wrong === undefined ? {} : { 'data-invalid': true })}>
      <AriaSwitch
        className="switch"
        isSelected={isOn}
        onChange={onChange}
        isDisabled={isOff}
        {...(wrong === undefined ? {} : { 'aria-describedby': fault })}
      >
        <span className="track" aria-hidden="true" />
        <span className="words">
          <span>{label}</span>
          {note === undefined ? null : <span className="note">{note}</span>}
        </span>
      </AriaSwitch>
      {wrong === undefined ? null : (
        <p className="wrong" id={fault}>
          {wrong}
        </p>
      )}
    </div>
  )
}

export interface CheckboxProps extends ToggleProps {
  readonly isPartly?: boolean
  readonly isLabelHidden?: boolean
}

export const Checkbox = (props: CheckboxProps): ReactNode => (
  <AriaCheckbox
    className="checkbox"
    isSelected={props.isOn}
    isIndeterminate={props.isPartly === true}
    onChange={props.onChange}
    {...(props.isLabelHidden === true ? { 'aria-label': props.label } : {})}
  >
    <span className="box" aria-hidden="true">
      {props.isPartly === true ? <Minus /> : <Check />}
    </span>
    {props.isLabelHidden === true ? null : (
      <span className="words">
        <span>{props.label}</span>
        {props.note === undefined ? null : <span className="note">{props.note}</span>}
      </span>
    )}
  </AriaCheckbox>
)

export interface PairsProps {
  readonly label: string
  readonly note?: string | undefined
  readonly wrong?: string | undefined
  readonly value: Readonly<Record<string, string>>
  readonly onChange: (value: Readonly<Record<string, string>>) => void
}

/** Keys with values, such as labels. */
export function PairsField({ label, note, wrong, value, onChange }: PairsProps): ReactNode {
  const [rows, setRows] = useState<readonly (readonly [string, string])[]>(Object.entries(value))
  const change = (next: readonly (readonly [string, string])[]): void => {
    setRows(next)
    onChange(Object.fromEntries(next.filter(([key]) => key !== '')))
  }
  const set = (at: number, row: readonly [string, string]): void =>
    change(rows.map((each, index) => (index === at ? row : each)))
  return (
    <fieldset className="field" {...(wrong === undefined ? {} : { 'data-invalid': true })}>
      <legend className="label">
        {label} <span className="optional">{t().ui.optional}</span>
      </legend>
      {note === undefined ? null : <p className="note">{note}</p>}
      <div className="pairs">
        {rows.map(([key, text], at) => (
          <div className="pair" key={at}>
            <TextField label={t().ui.key} value={key} onChange={(next) => set(at, [next, text])} />
            <TextField label={t().ui.value} value={text} onChange={(next) => set(at, [key, next])} />
            <Button
              kind="quiet"
              label={t().ui.remove}
              icon={<X aria-hidden="true" />}
              onPress={() => change(rows.filter((_row, index) => index !== at))}
            />
          </div>
        ))}
      </div>
      {wrong === undefined ? null : <p className="wrong">{wrong}</p>}
      <div>
        <Button kind="quiet" icon={<Plus aria-hidden="true" />} onPress={() => change([...rows, ['', '']])}>
          {t().ui.addLabel}
        </Button>
      </div>
    </fieldset>
  )
}
